#include "sim/llama/llama_session.hpp"

#include <algorithm>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/memory.hpp"
#include "sim/llama/llama_steps.hpp"

namespace spiked::sim {
namespace {

/// Cosines and sines of a block of tokens, tokens x head_dim / 2 each. They are not computed for all positions that a
/// configuration allows, which may be millions.
struct Rotation {
    arma::fmat cosines, sines;

    Rotation(const LlamaConfig& config, std::size_t first, std::size_t count) {
        // apply_rope turns (1, 0) in every pair into (cos, sin), so the angles are those of rope.hpp.
        const std::size_t half = config.head_dim / 2;
        arma::mat pairs(count, config.head_dim, arma::fill::zeros);
        pairs.head_cols(half).ones();
        const arma::mat rotated = apply_rope(pairs, config.rope, static_cast<double>(first));
        cosines = arma::conv_to<arma::fmat>::from(rotated.head_cols(half));
        sines = arma::conv_to<arma::fmat>::from(rotated.tail_cols(half));
    }
};

/// Applies the rotary embedding to every head of a block of tokens.
void rotate(arma::fmat& rows, const Rotation& by) {
    const arma::uword half = by.cosines.n_cols;
    for (arma::uword head = 0; head < rows.n_cols; head += 2 * half)
        for (arma::uword i = 0; i < half; ++i)
            for (arma::uword t = 0; t < rows.n_rows; ++t) {
                const float c = by.cosines(t, i);
                const float s = by.sines(t, i);
                const float a = rows(t, head + i);
                const float b = rows(t, head + half + i);
                rows(t, head + i) = a * c - b * s;
                rows(t, head + half + i) = b * c + a * s;
            }
}

/// The columns of one head.
auto of_head(const arma::fmat& rows, std::size_t head, std::size_t head_dim) {
    return rows.cols(head * head_dim, (head + 1) * head_dim - 1);
}

/// RMSNorm of every head; an empty weight means none.
void normalise_heads(arma::fmat& rows, const arma::fvec& weight, double epsilon) {
    if (weight.is_empty()) return;
    for (arma::uword first = 0; first < rows.n_cols; first += weight.n_elem) {
        auto head = rows.cols(first, first + weight.n_elem - 1);
        head = rms_norm(arma::fmat(head), weight, epsilon);
    }
}

/// The first cached row that the queries of tokens `first`, `first` + 1, ... see when each sees `window` tokens, its
/// own included.
std::vector<arma::uword> oldest_rows(const HeadCache& cached, std::size_t first, std::size_t queries,
                                     std::size_t window) {
    std::vector<arma::uword> oldest;
    for (std::size_t t = first; t < first + queries; ++t) {
        const std::size_t token = t + 1 - std::min(window, t + 1);
        const auto at = std::lower_bound(cached.tokens().begin(), cached.tokens().end(), token);
        oldest.push_back(static_cast<arma::uword>(at - cached.tokens().begin()));
    }
    return oldest;
}

/// Appends the keys and values of a block of tokens, which begins with token `first`, to the cache of a layer.
void cache_rows(std::vector<HeadCache>& cache, const arma::fmat& keys, const arma::fmat& values, std::size_t first) {
    const std::size_t head_dim = keys.n_cols / cache.size();
    for (std::size_t h = 0; h < cache.size(); ++h)
        cache[h].append(of_head(keys, h, head_dim), of_head(values, h, head_dim), first);
}

/// Replaces the rows of all heads of a layer from token `at` on.
void replace_layer(std::vector<HeadCache>& cache, std::size_t layer, std::size_t at, std::size_t rows,
                   const LayerReplacer& keep) {
    LayerRows exact;
    for (const HeadCache& head : cache) {
        exact.keys = arma::join_rows(exact.keys, head.copied(Side::key, at, rows));
        exact.values = arma::join_rows(exact.values, head.copied(Side::value, at, rows));
    }
    const LayerRows left = keep(layer, at, exact);
    const std::size_t head_dim = exact.keys.n_cols / cache.size();
    for (std::size_t h = 0; h < cache.size(); ++h) {
        cache[h].overwrite(Side::key, at, of_head(left.keys, h, head_dim));
        cache[h].overwrite(Side::value, at, of_head(left.values, h, head_dim));
    }
}

/// Whether the options say what replaces blocks.
bool replaces(const ForwardOptions& options) { return options.keep || options.keep_layer; }

/// Replaces the cached blocks of a layer from token `from` to token `end`, or evicts.
void replace_rows(std::vector<HeadCache>& cache, std::size_t layer, std::size_t from, std::size_t end,
                  const ForwardOptions& options) {
    if (options.keep_layer && !options.evict) {
        for (std::size_t at = from; at < end; at += options.block_tokens)
            replace_layer(cache, layer, at, std::min(options.block_tokens, end - at), options.keep_layer);
        return;
    }
    for (std::size_t h = 0; h < cache.size(); ++h) {
        HeadCache& cached = cache[h];
        if (options.evict) {
            const std::size_t rows = cached.rows();
            CachedHead left{cached.copied(Side::key, 0, rows), cached.copied(Side::value, 0, rows), cached.tokens()};
            options.evict(layer, h, end, left);
            cached.assign(left);
            continue;
        }
        for (const Side side : {Side::key, Side::value})
            for (std::size_t at = from; at < end; at += options.block_tokens) {
                const std::size_t rows = std::min(options.block_tokens, end - at);
                cached.overwrite(side, at, options.keep({layer, side, h, at}, cached.copied(side, at, rows)));
            }
    }
}

}  // namespace

PassMemory pass_memory(const LlamaConfig& model, std::uint64_t weight_bytes, std::size_t tokens,
                       std::size_t block_tokens, bool logits) {
    constexpr double bytes = sizeof(float);
    const auto rows = static_cast<double>(std::min(tokens, block_tokens));
    const std::size_t cached = 2 * model.layers * model.kv_heads * model.head_dim;
    const std::size_t arrays = 4 * model.hidden + 2 * model.intermediate + (logits ? model.vocabulary : 0);
    return {static_cast<double>(weight_bytes), bytes * static_cast<double>(cached) * static_cast<double>(tokens),
            bytes * static_cast<double>(arrays) * rows};
}

LlamaSession::LlamaSession(const Llama& model, ForwardOptions options)
    : model_(&model),
      options_(std::move(options)),
      caches_(model.config().layers, std::vector<HeadCache>(model.config().kv_heads)) {
    if (options_.block_tokens == 0) throw usage_error("blocks of 0 tokens: give 1 or more");
    if (options_.evict && options_.keep_own)
        throw precondition_error("evict and keep_own are combined (nothing has attended to the tokens of a block yet)");
}

std::size_t LlamaSession::block_end() const {
    const std::size_t end = block_ + options_.block_tokens;
    const std::size_t context = options_.context.value_or(0);
    return block_ < context ? std::min(end, context) : end;
}

void require_memory(const PassMemory& needed, std::size_t tokens, std::size_t passes) {
    const auto allowed = static_cast<double>(allowed_memory());
    if (needed.total(passes) <= allowed) return;
    const std::string times = passes > 1 ? fmt::format("{} times ", passes) : "";
    throw Error(
        ErrorKind::memory,
        fmt::format("out of memory (the weights take {:.2f} GB, the codecs {:.2f} GB, {}the cache of {} tokens {:.2f} "
                    "GB, the arrays of a block {:.2f} GB and the state beside the cache {:.2f} GB; {:.2f} GB are "
                    "allowed): {}cut the sequence or make the blocks smaller",
                    needed.weights / 1e9, needed.codecs / 1e9, times, tokens, needed.cache / 1e9, needed.block / 1e9,
                    needed.state / 1e9, allowed / 1e9, passes > 1 ? "use fewer threads, " : ""));
}

void LlamaSession::append(std::span<const std::int32_t> tokens) {
    const auto& c = model_->config();
    const std::size_t total = tokens_ + tokens.size();
    if (tokens.empty() || total > c.context)
        throw input_error("a sequence of {} tokens (expected 1 to {}, the model's context): cut it", total, c.context);
    for (std::size_t t = 0; t < tokens.size(); ++t)
        if (tokens[t] < 0 || static_cast<std::size_t>(tokens[t]) >= c.vocabulary)
            throw input_error("token {} of a sequence is {} (expected 0 to {}): is it of another vocabulary?",
                              tokens_ + t, tokens[t], c.vocabulary - 1);
    if (options_.keep_own && tokens_ != block_)
        throw precondition_error("tokens are appended within a block that keep_own has replaced");
    require_memory(
        pass_memory(c, model_->weight_bytes(), total, options_.block_tokens, static_cast<bool>(options_.predicted)),
        total);
    if (!options_.evict)
        for (auto& layer : caches_)
            for (auto& head : layer) head.reserve(total, c.head_dim);
    while (!tokens.empty()) {
        const std::size_t count = std::min(tokens.size(), block_end() - tokens_);
        append_part(tokens.first(count));
        tokens = tokens.subspan(count);
    }
}

void LlamaSession::replace_due_blocks() {
    if (!due_from_) return;
    for (std::size_t l = 0; l < caches_.size(); ++l) replace_rows(caches_[l], l, *due_from_, block_, options_);
    due_from_.reset();
}

arma::fmat LlamaSession::attended(std::size_t layer, const arma::fmat& queries) const {
    const auto& c = model_->config();
    const std::size_t window = c.window(layer);
    const bool slides = window > 0 && tokens_ + queries.n_rows > window;
    const std::size_t group = c.heads / c.kv_heads;
    arma::fmat result(queries.n_rows, c.heads * c.head_dim);
    for (std::size_t h = 0; h < c.kv_heads; ++h) {
        const HeadCache& cached = caches_[layer][h];
        const arma::span columns(h * group * c.head_dim, (h + 1) * group * c.head_dim - 1);
        const arma::fmat of_group = queries.cols(columns.a, columns.b);
        std::vector<arma::uword> oldest;
        if (slides) oldest = oldest_rows(cached, tokens_, queries.n_rows, window);
        std::vector<arma::fmat> weights;
        result.cols(columns.a, columns.b) = attend(of_group, cached.view(Side::key), cached.view(Side::value), oldest,
                                                   options_.attention ? &weights : nullptr);
        if (options_.attention)
            for (std::size_t g = 0; g < group; ++g)
                options_.attention({layer, h * group + g, tokens_, weights[g], cached.tokens()});
    }
    return result;
}

void LlamaSession::append_part(std::span<const std::int32_t> tokens) {
    replace_due_blocks();
    const auto& c = model_->config();
    const std::size_t end = tokens_ + tokens.size();
    const Rotation rotation(c, tokens_, tokens.size());
    arma::fmat state(tokens.size(), c.hidden);
    for (std::size_t t = 0; t < tokens.size(); ++t)
        state.row(t) = model_->embedding_.weights_of(static_cast<std::size_t>(tokens[t]));
    for (std::size_t l = 0; l < c.layers; ++l) {
        const Llama::Layer& layer = model_->layers_[l];
        const arma::fmat normalised = rms_norm(state, layer.attention_norm, c.norm_epsilon);
        arma::fmat queries = layer.query.product(normalised);
        arma::fmat keys = layer.key.product(normalised);
        const arma::fmat values = layer.value.product(normalised);
        normalise_heads(queries, layer.query_norm, c.norm_epsilon);
        normalise_heads(keys, layer.key_norm, c.norm_epsilon);
        rotate(queries, rotation);
        rotate(keys, rotation);
        if (options_.layer) options_.layer({l, tokens_, queries, keys, values, tokens});

        cache_rows(caches_[l], keys, values, tokens_);
        if (replaces(options_) && options_.keep_own) replace_rows(caches_[l], l, block_, end, options_);
        state += layer.output.product(attended(l, queries));
        const arma::fmat mlp_input = rms_norm(state, layer.mlp_norm, c.norm_epsilon);
        state += layer.down.product(silu_product(layer.gate.product(mlp_input), layer.up.product(mlp_input)));
    }
    last_ = state.tail_rows(1);
    if (options_.predicted) options_.predicted(tokens_, model_->log_probabilities(state));
    if (options_.scored) score(state);

    tokens_ = end;
    if (tokens_ < block_end()) return;
    const std::size_t context = options_.context.value_or(0);
    const bool replaceable = !options_.context || (options_.at_once ? end == context : end <= context);
    if ((replaces(options_) || options_.evict) && !options_.keep_own && replaceable)
        due_from_ = options_.at_once ? 0 : block_;
    block_ = tokens_;
}

void LlamaSession::score(const arma::fmat& states) const {
    std::vector<arma::uword> rows;
    std::vector<std::int32_t> wanted;
    for (std::size_t t = 0; t < states.n_rows && tokens_ + t < options_.next.size(); ++t)
        if (options_.next[tokens_ + t] >= 0) {
            rows.push_back(t);
            wanted.push_back(options_.next[tokens_ + t]);
        }
    if (rows.empty()) return;
    const arma::fmat normalised = rms_norm(states.rows(arma::uvec(rows)), model_->norm_, model_->config().norm_epsilon);
    options_.scored(log_probabilities_of(normalised, model_->head_, wanted));
}

arma::frowvec LlamaSession::log_probabilities() const {
    if (tokens_ == 0) throw precondition_error("a prediction before the first token");
    return model_->log_probabilities(last_);
}

}  // namespace spiked::sim
