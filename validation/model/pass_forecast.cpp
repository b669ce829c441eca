#include "validation/model/pass_forecast.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/timing/stopwatch.hpp"

namespace spiked::validation {
namespace {

double seconds_of(const std::function<void()>& work) {
    const double start = wall_microseconds();
    work();
    return 1e-6 * (wall_microseconds() - start);
}

/// Multiplications for a token that attends to so many tokens.
double multiplications(const sim::LlamaConfig& model, double attended) {
    const auto size = [](std::size_t a, std::size_t b) { return static_cast<double>(a) * static_cast<double>(b); };
    const std::size_t heads = 2 * model.heads + 2 * model.kv_heads;
    const double of_layer = size(model.hidden, heads * model.head_dim) + 3.0 * size(model.hidden, model.intermediate) +
                            2.0 * size(model.heads, model.head_dim) * attended;
    return static_cast<double>(model.layers) * of_layer + size(model.hidden, model.vocabulary);
}

/// Queries, keys and values of a block in one layer.
struct TriedLayer {
    std::size_t layer = 0;
    arma::fmat queries, keys, values;
    std::vector<std::int32_t> tokens;

    [[nodiscard]] sim::LayerBlock at(std::size_t token) const { return {layer, token, queries, keys, values, tokens}; }
};

/// Seconds that a version takes for the first block of a layer and for a later one.
struct LayerSeconds {
    double first = 0.0, later = 0.0;
};
LayerSeconds code_layer(const codec::CompressedCache& version, const TriedLayer& tried, const sim::LlamaConfig& model,
                        std::size_t tokens) {
    codec::CompressedCache cache = version;
    sim::ForwardOptions hooks;
    cache.attach(hooks, tokens);
    const std::size_t rows = tried.keys.n_rows;
    if (hooks.evict) return {};
    if (hooks.keep_layer) {
        const auto code = [&](std::size_t token) {
            if (hooks.layer) hooks.layer(tried.at(token));
            (void)hooks.keep_layer(tried.layer, token, {tried.keys, tried.values});
        };
        const double first = seconds_of([&] { code(0); });
        // A block that is not full is the last of a sequence.
        return {first, rows < estimators::causal_block ? first : seconds_of([&] { code(rows); })};
    }
    const double all = seconds_of([&] {
        for (std::size_t head = 0; head < model.kv_heads; ++head)
            for (const sim::Side side : {sim::Side::key, sim::Side::value}) {
                const arma::fmat& from = side == sim::Side::key ? tried.keys : tried.values;
                const arma::fmat own = from.cols(head * model.head_dim, (head + 1) * model.head_dim - 1);
                (void)hooks.keep({tried.layer, side, head, 0}, own);
            }
    });
    return {all, all};
}

}  // namespace

std::size_t PlannedPasses::longest() const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) most = std::max(most, tokens[i] + (added.empty() ? 0 : added[i]));
    return most;
}

std::size_t PlannedPasses::at_once() const {
    return std::min(thread_count(threads), std::max<std::size_t>(1, versions.size() * tokens.size()));
}

void forecast_memory(const PassNotes& notes, const sim::LlamaConfig& shape, const std::string& model,
                     const PlannedPasses& passes) {
    const std::size_t tokens = passes.longest();
    sim::PassMemory bytes =
        sim::pass_memory(shape, sim::LlamaWeights(model).bytes(), tokens, passes.block_tokens, passes.logits);
    for (const auto& version : passes.versions) {
        if (!version.cache) continue;
        bytes.codecs += version.cache->codec_bytes();
        bytes.state = std::max(bytes.state, version.cache->state_bytes(tokens));
    }
    if (notes.memory) notes.memory(bytes, tokens, passes.at_once());
    sim::require_memory(bytes, tokens, passes.at_once());
}

void forecast_time(const PassNotes& notes, const sim::Llama& model, std::span<const std::int32_t> text,
                   const PlannedPasses& passes) {
    if (!notes.time) return;
    try {
        notes.time(expected_seconds(model, text, passes), passes.versions.size() * passes.tokens.size());
    } catch (const Error& error) {
        // The passes meet it again, and say its place.
        if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::input) throw;
    }
}

double expected_seconds(const sim::Llama& model, std::span<const std::int32_t> text, const PlannedPasses& passes) {
    const auto& shape = model.config();
    const std::size_t block = std::min(passes.block_tokens, text.size() - 1);
    TriedLayer tried{.layer = shape.layers / 2};
    for (const auto& version : passes.versions)
        if (version.cache) tried.layer = version.cache->coded_layers()[version.cache->coded_layers().size() / 2];
    sim::ForwardOptions options{.block_tokens = block};
    options.layer = [&](const sim::LayerBlock& at) {
        if (at.layer == tried.layer)
            tried = {at.layer, at.queries, at.keys, at.values, {at.tokens.begin(), at.tokens.end()}};
    };
    const std::vector<std::int32_t> next(text.begin() + 1, text.begin() + 1 + static_cast<std::ptrdiff_t>(block));
    options.next = next;
    options.scored = [](const arma::vec&) {};
    sim::LlamaSession session(model, options);
    const double per_multiplication =
        seconds_of([&] { session.append(text.first(block)); }) /
        (static_cast<double>(block) * multiplications(shape, 0.5 * static_cast<double>(block)));
    const bool adds = std::any_of(passes.added.begin(), passes.added.end(), [](std::size_t n) { return n > 0; });
    const double added = adds ? seconds_of([&] {
        session.append(text.subspan(block, 1));
        (void)session.log_probabilities();
    })
                              : 0.0;

    double sum = 0.0;
    for (std::size_t i = 0; i < passes.tokens.size(); ++i) {
        const auto tokens = static_cast<double>(passes.tokens[i]);
        sum += static_cast<double>(passes.versions.size()) *
               (tokens * multiplications(shape, 0.5 * tokens) * per_multiplication +
                (adds ? static_cast<double>(passes.added[i]) * added : 0.0));
    }
    for (const auto& version : passes.versions) {
        if (!version.cache) continue;
        const LayerSeconds of_layer = code_layer(*version.cache, tried, shape, passes.tokens.front());
        for (const std::size_t tokens : passes.tokens) {
            const auto blocks = static_cast<double>(tokens / passes.block_tokens);
            sum += static_cast<double>(version.cache->coded_layers().size()) *
                   (of_layer.first + std::max(0.0, blocks - 1.0) * of_layer.later);
        }
    }
    return sum / static_cast<double>(passes.at_once());
}

}  // namespace spiked::validation
