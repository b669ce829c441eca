#include "codec/cache/compressed_cache.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::codec {
namespace {

using estimators::KeptAndCoded;
using sim::Side;

constexpr double bits_of_score = 32.0;

std::size_t codec_index(const sim::LlamaConfig& model, std::size_t layer, Side side, std::size_t head) {
    return (layer * 2 + (side == Side::key ? 0 : 1)) * model.kv_heads + head;
}

/// Bytes of a mask with one bit per token that says whether the token is kept; 0 if all are.
std::size_t position_bytes(const std::vector<std::size_t>& tokens, std::size_t seen) {
    if (tokens.size() == seen) return 0;
    estimators::BitWriter writer;
    std::size_t next = 0;
    for (std::size_t t = 0; t < seen; ++t) {
        const bool left = next < tokens.size() && tokens[next] == t;
        writer.write(estimators::Item::header, left ? 1 : 0, 1);
        if (left) ++next;
    }
    return writer.bytes().size();
}

/// Means over runs of rows that begin at `starts`. Each row is itself a mean over the tokens up to the next row's first
/// token, and is weighted by their number.
arma::fmat merged(const arma::fmat& rows, const std::vector<std::size_t>& tokens, const arma::uvec& starts,
                  std::size_t seen) {
    arma::fmat result(starts.n_elem, rows.n_cols, arma::fill::zeros);
    for (arma::uword run = 0; run < starts.n_elem; ++run) {
        const std::size_t end = run + 1 < starts.n_elem ? starts(run + 1) : rows.n_rows;
        std::size_t sum = 0;
        for (std::size_t i = starts(run); i < end; ++i) {
            const std::size_t count = (i + 1 < tokens.size() ? tokens[i + 1] : seen) - tokens[i];
            result.row(run) += static_cast<float>(count) * rows.row(i);
            sum += count;
        }
        result.row(run) /= static_cast<float>(sum);
    }
    return result;
}

}  // namespace

CacheBits& CacheBits::operator+=(const CacheBits& more) {
    rows += more.rows;
    positions += more.positions;
    scores += more.scores;
    exact += more.exact;
    return *this;
}

CacheBits& CacheBits::operator/=(double entries) {
    for (double* part : {&rows, &positions, &scores, &exact}) *part /= entries;
    return *this;
}

std::vector<CacheRequest> cache_requests(const std::vector<std::string>& methods, const std::vector<double>& bits,
                                         const std::vector<double>& budgets) {
    for (const double budget : budgets) require_accepted(estimators::budget_spec(), fmt::format("{}", budget));
    std::vector<CacheRequest> requests;
    for (const auto& method : methods) {
        CacheRequest request{estimators::parse_kept_and_coded(method), {16.0}, {1.0}};
        if (request.how.method || request.how.cache) request.bits = bits;
        for (const double width : bits) {
            if (request.how.method) request.how.method->quantizer.check_bits(width);
            if (request.how.cache) request.how.cache->check_bits(width);
        }
        if (request.how.eviction != nullptr) {
            if (budgets.empty())
                throw usage_error("\"{}\" evicts and no budget is given: give --budget 0.25 for a quarter of the bytes",
                                  method);
            request.budgets = budgets;
        }
        requests.push_back(std::move(request));
    }
    if (!budgets.empty() && std::none_of(requests.begin(), requests.end(),
                                         [](const CacheRequest& request) { return request.how.eviction != nullptr; }))
        throw usage_error("--budget is given and no method evicts: add snapkv to --method, or leave --budget out");
    return requests;
}

CompressedCache::CompressedCache(const sim::LlamaConfig& model, CachePlan plan)
    : model_(model), plan_(std::move(plan)) {
    if (plan_.how.cache && plan_.block_tokens != estimators::causal_block)
        throw usage_error("\"{}\" codes blocks of {} tokens (not {}): leave --block out", plan_.how.text,
                          estimators::causal_block, plan_.block_tokens);
    check_parts();
    if (evicts()) heads_.resize(model.layers * model.kv_heads);
    for (std::size_t layer = 0; layer < model.layers && evicts(); ++layer)
        if (applies_to(layer, Side::key)) layers_.push_back(layer);
    make_codecs(0);
    if (evicts() && codes()) probe_codecs();
}

void CompressedCache::check_parts() const {
    if (plan_.sinks > 0 && (evicts() || plan_.how.cache))
        throw usage_error(
            "--sinks with \"{}\" is not possible (it keeps first tokens by a rule of its own): leave it out",
            plan_.how.text);
    if (plan_.sinks > 0 && plan_.sinks >= plan_.block_tokens)
        throw usage_error("--sinks {} is not possible with blocks of {} tokens: give fewer", plan_.sinks,
                          plan_.block_tokens);
    const auto require_layer = [&](const char* option, std::size_t layer, Side side) {
        if (layer >= model_.layers)
            throw usage_error("{} {}:{} is not possible (the model has layers 0 to {}): name one of these", option,
                              layer, sim::side_name(side), model_.layers - 1);
    };
    for (const auto& [layer, side] : plan_.only) {
        require_layer("--only", layer, side);
        const bool joint = plan_.how.cache && plan_.how.cache->sides;
        if ((evicts() || joint) && !plan_.only.contains({layer, side == Side::key ? Side::value : Side::key}))
            throw usage_error("--only {}:{} with \"{}\" is not possible ({}): name both or neither", layer,
                              sim::side_name(side), plan_.how.text,
                              joint ? "it codes the keys and the values of a layer together"
                                    : "eviction removes the keys and the values of a token");
    }
    for (const auto& [part, extra] : plan_.extra_bits) {
        const auto& [layer, side] = part;
        require_layer("--extra-bits", layer, side);
        if (evicts())
            throw usage_error(
                "--extra-bits with \"{}\" is not possible (an eviction fills its budget at one number of bits): "
                "leave one of them out",
                plan_.how.text);
        if (!applies_to(layer, side))
            throw usage_error("--extra-bits {}:{} has no effect (--only leaves this part exact): leave one of them out",
                              layer, sim::side_name(side));
        const double bits = plan_.bits_of(layer, side);
        if (plan_.how.cache && plan_.how.cache->sides &&
            bits != plan_.bits_of(layer, side == Side::key ? Side::value : Side::key))
            throw usage_error(
                "--extra-bits {}:{}={:g} with \"{}\" is not possible (it codes the keys and the values of a layer "
                "together): name both sides with the same number",
                layer, sim::side_name(side), extra, plan_.how.text);
        try {
            plan_.how.method ? plan_.how.method->quantizer.check_bits(bits) : plan_.how.cache->check_bits(bits);
        } catch (const Error& error) {
            throw usage_error("--extra-bits {}:{}={:g}: {}", layer, sim::side_name(side), extra, error.what());
        }
    }
}

void CompressedCache::draw_rotations(std::uint64_t sequence) {
    if (sequence != 0) make_codecs(sequence);
}

void CompressedCache::make_codecs(std::uint64_t sequence) {
    if (!plan_.how.method) return;
    auto codecs = std::make_shared<std::map<std::size_t, estimators::Compressor>>();
    for (std::size_t layer = 0; layer < model_.layers; ++layer)
        for (const Side side : {Side::key, Side::value})
            for (std::size_t head = 0; head < model_.kv_heads && applies_to(layer, side); ++head) {
                auto own = plan_.quantizer;
                own.axis = side == Side::key ? estimators::GroupAxis::key : estimators::GroupAxis::value;
                const std::size_t index = codec_index(model_, layer, side, head);
                own.rotation_index = sequence * codec_index(model_, model_.layers, Side::key, 0) + index;
                codecs->try_emplace(index, *plan_.how.method, model_.head_dim, plan_.bits_of(layer, side), own);
            }
    codecs_ = std::move(codecs);
}

/// Measures the bits of a coded row, and whether a row is decoded the same from a joint code and from its own code.
/// Both are found by coding rows of noise.
void CompressedCache::probe_codecs() {
    const auto noise = [&](std::size_t rows) {
        arma::mat values(rows, model_.head_dim);
        stream::fill_normal(stream::Stream(plan_.quantizer.seed, "rows alone", stream::Role::noise, 0),
                            {values.memptr(), values.n_elem});
        return values;
    };
    const auto encode = [](const estimators::Compressor& codec, const arma::mat& rows) {
        estimators::AnalysedBlock block(rows);
        return codec.encode(block).encoded.bytes;
    };
    rows_independent_ = !plan_.how.method->spectral;
    for (const Side side : {Side::key, Side::value}) {
        const auto& codec = codecs_->at(codec_index(model_, layers_.front(), side, 0));
        if (plan_.how.eviction->rows_of_layer != nullptr)
            coded_row_bits_ += 8.0 * static_cast<double>(encode(codec, noise(plan_.block_tokens)).size()) /
                               static_cast<double>(plan_.block_tokens);
        if (!rows_independent_) continue;
        const arma::mat rows = noise(8);
        const arma::mat decoded_jointly = codec.decode(encode(codec, rows), rows.n_rows);
        for (arma::uword i = 0; i < rows.n_rows && rows_independent_; ++i)
            rows_independent_ = arma::approx_equal(arma::mat(codec.decode(encode(codec, rows.row(i)), 1)),
                                                   arma::mat(decoded_jointly.row(i)), "absdiff", 1e-9);
    }
}

double CompressedCache::bits_of_row() const {
    double bits = codes() ? coded_row_bits_ : full_bits(1);
    if (chooses_again() && plan_.how.eviction->accumulates) bits += bits_of_score;
    if (chooses_again() && codes() && (merges() || !rows_independent_)) bits += full_bits(1);
    return bits;
}

CompressedCache::LayerBudget CompressedCache::layer_budget(std::size_t layer, std::size_t seen) const {
    const double mean = full_bits(seen) * plan_.budget;
    const auto rows_of_layer = plan_.how.eviction->rows_of_layer;
    if (rows_of_layer == nullptr) return {mean};
    const double row = bits_of_row();
    const double room = (mean - 8.0 * static_cast<double>(position_bytes({0}, seen))) / row;
    std::size_t rows = seen;
    if (mean < row * static_cast<double>(seen)) rows = room < 1.0 ? 1 : std::min(static_cast<std::size_t>(room), seen);
    const auto place = static_cast<std::size_t>(std::find(layers_.begin(), layers_.end(), layer) - layers_.begin());
    const auto own = static_cast<double>(rows_of_layer(rows, seen, place, layers_.size()));
    return {mean + (own - static_cast<double>(rows)) * row, rows};
}

void CompressedCache::require_room(std::size_t tokens) const {
    if (!evicts() || codes()) return;
    const double least = (bits_of_row() + 8.0 * static_cast<double>(position_bytes({0}, tokens))) / full_bits(tokens);
    if (plan_.budget < least)
        throw usage_error(
            "--budget {:g} has no room for one of {} tokens (\"{}\" keeps one at least): give {:.3g} or more",
            plan_.budget, tokens, plan_.how.text, least);
}

LayerStreams::Bits CompressedCache::bits_of_layer(std::size_t layer) const {
    const auto bits = [&](Side side) {
        return applies_to(layer, side) ? std::optional(plan_.bits_of(layer, side)) : std::nullopt;
    };
    return {bits(Side::key), bits(Side::value)};
}

std::vector<std::size_t> CompressedCache::coded_layers() const {
    std::vector<std::size_t> layers;
    for (std::size_t layer = 0; layer < model_.layers; ++layer)
        if (applies_to(layer, Side::key) || applies_to(layer, Side::value)) layers.push_back(layer);
    return layers;
}

double CompressedCache::codec_bytes() const {
    const bool matrices = plan_.how.method && plan_.quantizer.rotation == estimators::RotationKind::haar &&
                          draws_random_numbers(*plan_.how.method);
    if (!matrices) return 0.0;
    const auto entries = static_cast<double>(model_.head_dim * model_.head_dim);
    return static_cast<double>(codecs_->size()) * entries * (sizeof(double) + sizeof(float));
}

double CompressedCache::state_bytes(std::size_t tokens) const {
    double sum = codec_bytes();
    if (plan_.how.cache) {
        const LayerStreams streams(model_, *plan_.how.cache, tokens);
        for (const std::size_t layer : coded_layers()) sum += streams.expected_bytes(bits_of_layer(layer));
    }
    if (evicts()) {
        // For each token and head what it was attended to, and its exact rows where they are coded; the weights of a
        // block in the query heads that share a head.
        const std::size_t numbers = 1 + window_ + (codes() ? 2 * model_.head_dim : 0);
        const std::size_t weights = plan_.block_tokens * (model_.heads / model_.kv_heads);
        sum += static_cast<double>(tokens * (layers_.size() * model_.kv_heads * numbers + weights)) * sizeof(float);
    }
    return sum;
}

void CompressedCache::attach(sim::ForwardOptions& options, std::size_t tokens) {
    if (plan_.how.cache) {
        streams_.emplace(model_, *plan_.how.cache, tokens);
        options.keep_layer = [this](std::size_t layer, std::size_t first_token, const sim::LayerRows& exact) {
            auto coded = streams_->code(layer, first_token, exact, bits_of_layer(layer));
            bits_.rows += coded.bits;
            entries_ += coded.entries;
            return std::move(coded.rows);
        };
        options.layer = [this, others = std::move(options.layer)](const sim::LayerBlock& at) {
            streams_->note(at);
            if (others) others(at);
        };
        return;
    }
    if (!evicts()) {
        options.keep = [this](const sim::CacheAddress& place, const arma::fmat& exact) { return keep(place, exact); };
        return;
    }
    chooses_once_ = options.at_once;
    options.evict = [this](std::size_t layer, std::size_t head, std::size_t seen, sim::CachedHead& cached) {
        evict(layer, head, seen, cached);
    };
    if (observed_) return;
    options.attention = [this, others = std::move(options.attention)](const sim::AttentionBlock& at) {
        attended(at);
        if (others) others(at);
    };
}

void CompressedCache::observe(const sim::Llama& model, std::span<const std::int32_t> tokens) {
    if (!evicts()) return;
    sim::ForwardOptions options{.block_tokens = plan_.block_tokens};
    options.attention = [this](const sim::AttentionBlock& at) { attended(at); };
    model.forward(tokens, options);
    observed_ = true;
}

void CompressedCache::attended(const sim::AttentionBlock& at) {
    const std::size_t group = model_.heads / model_.kv_heads;
    Head& head = heads_[at.layer * model_.kv_heads + at.head / group];
    const arma::fmat weights = at.weights / static_cast<float>(group);
    const arma::uword rows = weights.n_cols;
    const arma::uword queries = std::min<arma::uword>(weights.n_rows, window_);
    if (at.head % group == 0) {
        head.accumulated.resize(rows);
        head.observed.resize(window_, rows);
        head.observed =
            arma::join_cols(head.observed.tail_rows(window_ - queries), arma::fmat(queries, rows, arma::fill::zeros));
    }
    head.accumulated += arma::sum(weights, 0).t();
    head.observed.tail_rows(queries) += weights.tail_rows(queries);
}

arma::fmat CompressedCache::coded(const sim::CacheAddress& place, const arma::fmat& exact,
                                  std::span<const std::size_t> tokens, double& bits) {
    const bool derotated = place.side == Side::key && plan_.how.method->unrope;
    const std::vector<double> positions(tokens.begin(), tokens.end());
    auto rows = arma::conv_to<arma::mat>::from(exact);
    if (derotated) rows = sim::undo_rope(rows, model_.rope, positions);
    try {
        const auto& codec = codecs_->at(codec_index(model_, place.layer, place.side, place.head));
        estimators::AnalysedBlock block(std::move(rows));
        const auto encoded = codec.encode(block).encoded;
        bits += 8.0 * static_cast<double>(encoded.bytes.size());
        arma::mat back = codec.decode(encoded.bytes, exact.n_rows);
        if (derotated) back = sim::apply_rope(back, model_.rope, positions);
        return arma::conv_to<arma::fmat>::from(back);
    } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("layer {}, {} of head {}, {} tokens from {} to {}: {}", place.layer,
                                              sim::side_name(place.side), place.head, tokens.size(), tokens.front(),
                                              tokens.back(), error.what()));
    }
}

arma::fmat CompressedCache::keep(const sim::CacheAddress& place, const arma::fmat& exact) {
    if (!applies_to(place.layer, place.side)) return exact;
    std::vector<std::size_t> tokens(exact.n_rows);
    for (std::size_t t = 0; t < tokens.size(); ++t) tokens[t] = place.first_token + t;
    entries_ += static_cast<double>(exact.n_elem);
    const std::size_t sinks = place.first_token == 0 ? plan_.sinks : 0;
    if (sinks == 0) return coded(place, exact, tokens, bits_.rows);
    bits_.rows += 16.0 * static_cast<double>(sinks * exact.n_cols);
    arma::fmat rows = exact;
    rows.tail_rows(exact.n_rows - sinks) =
        coded(place, arma::fmat(exact.tail_rows(exact.n_rows - sinks)), std::span(tokens).subspan(sinks), bits_.rows);
    return rows;
}

CacheBits CompressedCache::code(std::size_t layer, std::size_t head, std::size_t seen, sim::CachedHead& cached) {
    const std::size_t rows = cached.tokens.size();
    const double exact = 16.0 * static_cast<double>(cached.keys.n_elem + cached.values.n_elem);
    CacheBits bits{.positions = 8.0 * static_cast<double>(position_bytes(cached.tokens, seen))};
    if (chooses_again()) {
        if (plan_.how.eviction->accumulates) bits.scores = bits_of_score * static_cast<double>(rows);
        if (codes() && (merges() || !rows_independent_)) bits.exact = exact;
    }
    if (!codes()) {
        bits.rows = exact;
        return bits;
    }
    const std::size_t blocks = (rows + plan_.block_tokens - 1) / plan_.block_tokens;
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::size_t first = block * rows / blocks;
        const std::size_t last = (block + 1) * rows / blocks - 1;
        const auto tokens = std::span<const std::size_t>(cached.tokens).subspan(first, last - first + 1);
        for (const Side side : {Side::key, Side::value}) {
            arma::fmat& all = side == Side::key ? cached.keys : cached.values;
            all.rows(first, last) =
                coded({layer, side, head, tokens.front()}, arma::fmat(all.rows(first, last)), tokens, bits.rows);
        }
    }
    return bits;
}

void CompressedCache::evict(std::size_t layer, std::size_t head, std::size_t seen, sim::CachedHead& cached) {
    if (!applies_to(layer, Side::key)) return;
    const estimators::Eviction& eviction = *plan_.how.eviction;
    Head& own = heads_[layer * model_.kv_heads + head];
    const std::size_t rows = cached.tokens.size();
    // Rows that were coded before are in `cached` as decoded rows; their exact values are in `own`.
    const std::size_t coded_before = own.keys.n_rows;
    const sim::CachedHead exact{arma::join_cols(own.keys, cached.keys.tail_rows(rows - coded_before)),
                                arma::join_cols(own.values, cached.values.tail_rows(rows - coded_before)),
                                cached.tokens};
    own.accumulated.resize(rows);
    own.observed.resize(own.observed.n_rows, rows);

    const double full = full_bits(seen);
    const auto [budget, mean_rows] = layer_budget(layer, seen);
    arma::uvec kept = arma::regspace<arma::uvec>(0, rows - 1);
    sim::CachedHead left = exact;
    CacheBits stored;
    for (;;) {
        cached = left;
        stored = code(layer, head, seen, cached);
        const double bits = stored.total();
        if (bits <= budget) break;
        if (kept.n_elem == 1)
            throw usage_error(
                "--budget {:g} gives layer {} {:.0f} bits for the {} tokens of a head (\"{}\" takes {:.0f} for one "
                "token): give a larger budget",
                plan_.budget, layer, budget, seen, plan_.how.text, bits);
        const auto room = static_cast<std::size_t>(static_cast<double>(kept.n_elem) * budget / bits);
        kept = eviction.kept({exact.keys, own.accumulated, own.observed, mean_rows},
                             std::clamp<std::size_t>(room, 1, kept.n_elem - 1));
        left.keys = eviction.merges ? merged(exact.keys, exact.tokens, kept, seen) : exact.keys.rows(kept);
        left.values = eviction.merges ? merged(exact.values, exact.tokens, kept, seen) : exact.values.rows(kept);
        left.tokens.clear();
        for (const arma::uword row : kept) left.tokens.push_back(exact.tokens[row]);
    }
    bits_ += stored;
    entries_ += full / 16.0;
    own.accumulated = own.accumulated.elem(kept);
    if (chooses_once_)
        own.observed = own.observed.cols(kept);
    else
        own.observed.reset();
    if (plan_.how.method) {
        own.keys = std::move(left.keys);
        own.values = std::move(left.values);
    }
}

std::vector<CacheVersion> cache_versions(const sim::LlamaConfig& model, const std::vector<CacheRequest>& requests,
                                         CachePlan common, std::size_t first_choice) {
    std::vector<CacheVersion> versions(1);
    for (const auto& request : requests)
        for (const double budget : request.budgets)
            for (const double bits : request.bits) {
                CacheVersion version{request.how.text, bits, std::nullopt, std::nullopt};
                if (request.how.eviction != nullptr) version.budget = budget;
                common.how = request.how;
                common.bits = bits;
                common.budget = budget;
                version.cache.emplace(model, common);
                version.cache->require_room(first_choice);
                versions.push_back(std::move(version));
            }
    return versions;
}

}  // namespace spiked::codec
