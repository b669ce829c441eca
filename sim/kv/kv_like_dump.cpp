#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/kv/kv_like.hpp"
#include "sim/kv/kv_needles.hpp"

namespace spiked::sim {
namespace {

/// The values of one layer in file order: key, value and query, each [head, token, dim].
struct LayerValues {
    std::optional<std::size_t> layer;
    std::array<std::vector<double>, 3> sides;
};

void append_rows(std::vector<double>& rows, const arma::mat& block) {
    const arma::mat by_token = block.t();
    rows.insert(rows.end(), by_token.begin(), by_token.end());
}

void make_layer(LayerValues& rows, std::size_t layer, const KvLikeOptions& options, const KvLikeCache& cache,
                const std::optional<KvNeedles>& needles) {
    if (rows.layer == layer) return;
    for (auto& side : rows.sides) side.clear();
    for (std::size_t head = 0; head < cache.heads; ++head) {
        const KvLikeHead one(options, cache.seed, fmt::format("{} layer {}", cache.cell, layer), head);
        KvLikeSample sample = one.sample(cache.replicate);
        if (needles && layer + 1 == cache.layers) needles->plant(sample);
        append_rows(rows.sides[0], sample.key.observed);
        append_rows(rows.sides[1], sample.value.observed);
        for (const auto& query : sample.queries) append_rows(rows.sides[2], query);
    }
    rows.layer = layer;
}

Metadata metadata_of(const KvLikeOptions& options, const KvLikeCache& cache) {
    const std::string prompt = cache.prompt_id.empty()
                                   ? fmt::format("{} {} {}", cache.cell, cache.seed.text(), cache.replicate)
                                   : cache.prompt_id;
    Metadata metadata{{"model", "kv-like"},
                      {"layout", "head,token,dim"},
                      {"keys", options.rotary ? "post-rope" : "none"},
                      {"attention", "causal"},
                      {"tokens", std::to_string(options.tokens)},
                      {"prompt_id", prompt}};
    if (options.rotary) {
        metadata.emplace_back("rope_base", fmt::format("{}", options.rotary->rope.base));
        metadata.emplace_back("rope_style", rope_style_name(options.rotary->rope.style));
        metadata.emplace_back("position_start", std::to_string(options.rotary->position_start));
    }
    metadata.emplace_back("seed", cache.seed.text());
    metadata.emplace_back("cell", cache.cell);
    metadata.emplace_back("replicate", std::to_string(cache.replicate));
    metadata.emplace_back("options", describe(options).text());
    return metadata;
}

}  // namespace

void write_kv_like(const std::string& path, const KvLikeOptions& options, const KvLikeCache& cache) {
    require_possible(options);
    if (cache.layers == 0 || cache.heads == 0)
        throw usage_error("a kv_like cache of {} layers and {} heads is empty: give 1 or more of each", cache.layers,
                          cache.heads);
    if (!is_block_dtype(cache.dtype))
        throw usage_error("a kv_like cache cannot be written as {} (it holds real numbers): give F16, BF16, F32 or F64",
                          dtype_name(cache.dtype));
    // Throws for a head beyond the end of a stream before anything is written.
    (void)KvLikeHead(options, cache.seed, cache.cell, cache.heads - 1);
    std::optional<KvNeedles> needles;
    if (cache.needles > 0) needles.emplace(options, cache);
    // The writer reads the tensors in their order, so one layer in memory is enough.
    auto rows = std::make_shared<LayerValues>();
    std::vector<TensorSource> tensors;
    for (std::size_t layer = 0; layer < cache.layers; ++layer)
        for (std::size_t side = 0; side < all_sides.size(); ++side) {
            const std::size_t heads =
                all_sides[side] == Side::query ? cache.heads * options.queries.heads : cache.heads;
            if (heads == 0) continue;
            tensors.push_back(
                {fmt::format("layers.{}.{}", layer, side_name(all_sides[side])),
                 cache.dtype,
                 {heads, options.tokens, options.head_dim},
                 [rows, layer, side, &options, &cache, &needles](std::uint64_t first, std::span<double> out) {
                     make_layer(*rows, layer, options, cache, needles);
                     const auto& values = rows->sides.at(side);
                     std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
                 }});
        }
    Metadata metadata = metadata_of(options, cache);
    if (needles) {
        for (auto& entry : needles->metadata()) metadata.push_back(std::move(entry));
        for (auto& tensor : needles->tensors()) tensors.push_back(std::move(tensor));
    }
    write_safetensors(path, metadata, tensors);
}

}  // namespace spiked::sim
