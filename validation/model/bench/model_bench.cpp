#include "validation/model/bench/model_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

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
    options.predicted = [&](std::size_t first, const arma::fmat& rows) {
        for (std::size_t t = 0; t < rows.n_rows && first + t + 1 < tokens.size(); ++t)
            sum -= static_cast<double>(rows(t, static_cast<arma::uword>(tokens[first + t + 1])));
    };
    model.forward(tokens, options);
    return sum / static_cast<double>(tokens.size() - 1);
}

}  // namespace

ModelTimings time_model(const std::string& folder, const std::string& path, double seconds) {
    const sim::Llama model(folder);
    const auto& shape = model.config();
    if (shape.rope.scaling)
        throw input_error(
            "{}: its rotary embedding is scaled (the NumPy program uses unscaled frequencies): name a "
            "model without rope_scaling",
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
    result.rows = time_interleaved({{"spiked", [&] { use_result(mean_nats(model, tokens)); }},
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
