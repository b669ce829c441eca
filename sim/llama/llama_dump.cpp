#include "sim/llama/llama_dump.hpp"

#include <fmt/format.h>

#include <array>

#include "core/runtime/error.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/kv/dump_view.hpp"

namespace spiked::sim {

PassMemory dump_memory(const LlamaConfig& model, std::uint64_t weight_bytes, std::size_t tokens) {
    PassMemory bytes = pass_memory(model, weight_bytes, tokens, ForwardOptions().block_tokens);
    const std::size_t numbers = model.layers * (model.heads + 2 * model.kv_heads) * model.head_dim;
    bytes.state = static_cast<double>(sizeof(float)) * static_cast<double>(numbers) * static_cast<double>(tokens);
    return bytes;
}

void write_llama_dump(const std::string& path, const Llama& model, std::span<const std::int32_t> tokens,
                      const LlamaDumpOptions& options) {
    const auto& shape = model.config();
    for (const std::size_t window : shape.windows)
        if (window > 0 && window < tokens.size())
            throw input_error(
                "{} tokens are more than the model's sliding window of {} (attention in a dump is to all earlier "
                "tokens): write a dump of at most {} tokens",
                tokens.size(), window, window);
    require_memory(dump_memory(shape, model.weight_bytes(), tokens.size()), tokens.size());
    // Key, value and query of each layer, tokens x heads * dim.
    std::vector<std::array<arma::fmat, 3>> cache(shape.layers);
    for (auto& layer : cache)
        for (std::size_t side = 0; side < 3; ++side)
            layer[side].set_size(tokens.size(), (side == 2 ? shape.heads : shape.kv_heads) * shape.head_dim);
    ForwardOptions forward;
    forward.layer = [&](const LayerBlock& block) {
        const arma::uword last = block.first_token + block.keys.n_rows - 1;
        cache[block.layer][0].rows(block.first_token, last) = block.keys;
        cache[block.layer][1].rows(block.first_token, last) = block.values;
        cache[block.layer][2].rows(block.first_token, last) = block.queries;
        if (options.progress && block.layer + 1 == shape.layers) options.progress(last + 1, tokens.size());
    };
    model.forward(tokens, forward);

    std::vector<TensorSource> tensors;
    for (std::size_t layer = 0; layer < shape.layers; ++layer)
        for (std::size_t side = 0; side < all_sides.size(); ++side) {
            const arma::fmat& rows = cache[layer][side];
            tensors.push_back({fmt::format("layers.{}.{}", layer, side_name(all_sides[side])),
                               options.dtype,
                               {rows.n_cols / shape.head_dim, rows.n_rows, shape.head_dim},
                               [&rows, dim = shape.head_dim](std::uint64_t first, std::span<double> out) {
                                   for (std::size_t i = 0; i < out.size(); ++i) {
                                       const std::uint64_t at = first + i;
                                       const std::uint64_t head = at / dim / rows.n_rows;
                                       out[i] =
                                           static_cast<double>(rows(at / dim % rows.n_rows, head * dim + at % dim));
                                   }
                               }});
        }
    tensors.push_back(tensor_of(token_ids_name, DType::i32, {tokens.size()}, {tokens.begin(), tokens.end()}));
    Metadata metadata = {{"model", options.model},
                         {"layout", "head,token,dim"},
                         {"keys", "post-rope"},
                         {"attention", "causal"},
                         {"position_start", "0"},
                         {"rope_base", fmt::format("{}", shape.rope.base)},
                         {"rope_style", std::string(rope_style_name(shape.rope.style))}};
    if (shape.rope.scaling) metadata.emplace_back("rope_scaling", rope_scaling_json(*shape.rope.scaling).text());
    if (!options.prompt_id.empty()) metadata.emplace_back("prompt_id", options.prompt_id);
    write_safetensors(path, metadata, tensors);
}

}  // namespace spiked::sim
