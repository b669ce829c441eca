#include "validation/model/bench/model_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/timing/numpy_peer.hpp"
#include "sim/llama/llama.hpp"
#include "validation/model/bench/model_in_numpy_program.hpp"
#include "validation/model/perplexity.hpp"

namespace spiked::validation {
namespace {

/// Relative tolerance of nats: the programs sum floats in different orders.
constexpr double agreement = 1e-5;
constexpr std::size_t block_tokens = 128;

double mean_nats(const sim::Llama& model, const std::vector<std::int32_t>& tokens) {
    double sum = 0.0;
    sim::ForwardOptions options{.block_tokens = block_tokens};
    options.next = std::span(tokens).subspan(1);
    options.scored = [&](const arma::vec& log_probabilities) { sum -= arma::sum(log_probabilities); };
    model.forward(tokens, options);
    return sum / static_cast<double>(tokens.size() - 1);
}

/// The matrix products of a forward pass and nothing else. Each map has one matrix, which all layers share, and each kv
/// head one product for all its query heads, with all cached rows.
class GemmFloor {
public:
    explicit GemmFloor(const sim::LlamaConfig& shape)
        : shape_(shape),
          group_(shape.heads / shape.kv_heads),
          head_(shape.hidden, vocabulary_at_once, arma::fill::ones) {
        const std::size_t queries = shape.heads * shape.head_dim;
        const std::size_t keys = shape.kv_heads * shape.head_dim;
        for (const auto& [inputs, outputs] : {std::pair{shape.hidden, queries},
                                              {shape.hidden, keys},
                                              {shape.hidden, keys},
                                              {queries, shape.hidden},
                                              {shape.hidden, shape.intermediate},
                                              {shape.hidden, shape.intermediate},
                                              {shape.intermediate, shape.hidden}})
            maps_.emplace_back(inputs, outputs, arma::fill::ones);
    }

    void run(std::size_t tokens) const {
        float sum = 0.0F;
        for (std::size_t first = 0; first < tokens; first += block_tokens) {
            const std::size_t count = std::min(block_tokens, tokens - first);
            const arma::fmat queries(group_ * count, shape_.head_dim, arma::fill::ones);
            const arma::fmat cached(first + count, shape_.head_dim, arma::fill::ones);
            for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
                for (const arma::fmat& map : maps_)
                    sum += product(arma::fmat(count, map.n_rows, arma::fill::ones), map);
                for (std::size_t head = 0; head < shape_.kv_heads; ++head) {
                    const arma::fmat scores = queries * cached.t();
                    sum += product(scores, cached);
                }
            }
            const arma::fmat states(count, shape_.hidden, arma::fill::ones);
            for (std::size_t at = 0; at < shape_.vocabulary; at += vocabulary_at_once)
                sum += product(states, head_.head_cols(std::min(vocabulary_at_once, shape_.vocabulary - at)));
        }
        use_result(static_cast<double>(sum));
    }

private:
    static constexpr std::size_t vocabulary_at_once = 1024;
    static float product(const arma::fmat& rows, const arma::fmat& map) {
        const arma::fmat result = rows * map;
        return result(0);
    }

    sim::LlamaConfig shape_;
    std::size_t group_;
    std::vector<arma::fmat> maps_;
    arma::fmat head_;
};

}  // namespace

ModelTimings time_model(const std::string& folder, const std::string& path, double seconds) {
    const sim::Llama model(folder);
    const auto& shape = model.config();
    if (shape.rope.scaling)
        throw input_error(
            "{}: its rotary embedding is scaled (the NumPy program uses unscaled frequencies): name a model without "
            "rope_scaling",
            folder);
    if (shape.output_bias || shape.mlp_bias || shape.head_norms || shape.fused || !shape.windows.empty())
        throw input_error(
            "{}: its layers have more than plain maps and biases of queries, keys and values (the NumPy program knows "
            "no more): name a model of the family llama or qwen2",
            folder);
    std::vector<std::int32_t> tokens;
    if (auto documents = read_documents(path, shape, std::numeric_limits<std::size_t>::max()); !documents.empty())
        tokens = std::move(documents.front());
    tokens.resize(std::min<std::size_t>(tokens.size(), shape.context));
    if (tokens.size() < 2) throw input_error("{}: a document of {} tokens (expected 2 or more)", path, tokens.size());

    ModelTimings result{.tokens = tokens.size(), .nats = mean_nats(model, tokens)};
    Json files = Json::array();
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".safetensors") files.push(std::filesystem::absolute(entry.path()).string());
    Json list = Json::array();
    for (const std::int32_t token : tokens) list.push(token);
    const Json header = Json::object({{"files", std::move(files)},
                                      {"tokens", std::move(list)},
                                      {"block", block_tokens},
                                      {"shape", Json::object({{"layers", shape.layers},
                                                              {"heads", shape.heads},
                                                              {"kv_heads", shape.kv_heads},
                                                              {"head_dim", shape.head_dim},
                                                              {"norm_epsilon", shape.norm_epsilon},
                                                              {"rope_base", shape.rope.base},
                                                              {"tied", shape.tied}})}});
    NumpyPeer numpy(model_numpy_program, header, [](NumpyPeer&) {});
    result.numpy = numpy.description();
    numpy.say("nats");
    result.nats_in_numpy = NumpyPeer::number(numpy.answer(), "nats");
    if (!(std::abs(result.nats - result.nats_in_numpy) <= agreement * std::max(1.0, result.nats)))
        throw postcondition_error("NumPy finds {:.9g} nats a token where spiked finds {:.9g}", result.nats_in_numpy,
                                  result.nats);
    // Time is measured per forward pass and divided by the number of tokens below.
    const GemmFloor floor(shape);
    result.rows = time_interleaved({{"spiked", [&] { use_result(mean_nats(model, tokens)); }},
                                    {"gemm-floor", [&] { floor.run(tokens.size()); }},
                                    {"numpy",
                                     {},
                                     [&](std::size_t passes) {
                                         numpy.say(fmt::format("time {}", passes));
                                         return NumpyPeer::number(numpy.answer(), "microseconds");
                                     }}},
                                   seconds);
    for (Timing& row : result.rows) {
        row.median /= static_cast<double>(tokens.size());
        row.p10 /= static_cast<double>(tokens.size());
    }
    return result;
}

}  // namespace spiked::validation
