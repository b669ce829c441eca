#include "sim/kv/kv_like.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/enum_names.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"

template <>
struct spiked::EnumNames<spiked::sim::ContextCourse> {
    using Course = spiked::sim::ContextCourse;
    static constexpr EnumName<Course> table[] = {{Course::smooth, "smooth"}, {Course::random, "random"}};
};

template <>
struct spiked::EnumNames<spiked::sim::OutlierPlace> {
    using Place = spiked::sim::OutlierPlace;
    static constexpr EnumName<Place> table[] = {{Place::slow, "slow"}, {Place::any, "any"}};
};

namespace spiked::sim {
namespace {

using stream::Role;
using stream::Stream;

constexpr std::uint64_t stream_elements = std::uint64_t{1} << 32;

/// A number of the options and its range.
struct Bounds {
    std::string_view name;
    double value;
    double least;
    double most;
    bool open = false;  ///< whether the ends are excluded
};

void require_within(const Bounds& bounds) {
    const bool inside = bounds.open ? bounds.value > bounds.least && bounds.value < bounds.most
                                    : bounds.value >= bounds.least && bounds.value <= bounds.most;
    if (inside && std::isfinite(bounds.value)) return;
    const std::string range =
        std::isinf(bounds.most)
            ? fmt::format("{} {}", bounds.open ? "above" : "from", bounds.least)
            : fmt::format("from {} to {}{}", bounds.least, bounds.most, bounds.open ? ", the ends excluded" : "");
    throw usage_error("{} = {} is not usable in a kv_like model (it must be a number {}{}): correct it", bounds.name,
                      bounds.value, range, std::isinf(bounds.most) && !bounds.open ? " on" : "");
}

/// The channels that may be outliers.
std::vector<std::size_t> outlier_candidates(const KvLikeOptions& options) {
    std::vector<std::size_t> candidates;
    const std::size_t pairs = options.head_dim / 2;
    for (std::size_t c = 0; c < options.head_dim; ++c)
        if (!options.rotary || options.outliers.place == OutlierPlace::any ||
            rope_pair(options.rotary->rope.style, c, options.head_dim) >= pairs / 2)
            candidates.push_back(c);
    return candidates;
}

void require_numbers(const KvLikeOptions& options) {
    constexpr double any = std::numeric_limits<double>::infinity();
    const auto& [rank, decay, course, period, key, value, query] = options.context;
    for (const Bounds& bounds : {
             Bounds{"context.decay", decay, 1e-6, 1.0},
             Bounds{"context.period", period, 2.0, any},
             Bounds{"context.key", key, 0.0, any},
             Bounds{"context.value", value, 0.0, any},
             Bounds{"context.query", query, 0.0, any},
             Bounds{"noise.scale", options.noise.scale, 0.0, any},
             Bounds{"noise.token_correlation", options.noise.token_correlation, -1.0, 1.0, true},
             Bounds{"noise.hidden_decay", options.noise.hidden_decay, 0.0, 100.0},
             Bounds{"outliers.mean", options.outliers.mean, 0.0, any},
             Bounds{"outliers.scale", options.outliers.scale, 0.0, any, true},
             Bounds{"queries.mean", options.queries.mean, 0.0, any},
             Bounds{"queries.scale", options.queries.scale, 0.0, any, true},
         })
        require_within(bounds);
    if (options.sink)
        for (const Bounds& bounds :
             {Bounds{"sink.key", options.sink->key, 0.0, any}, Bounds{"sink.value", options.sink->value, 0.0, any},
              Bounds{"sink.token_part", options.sink->token_part, 0.0, any}})
            require_within(bounds);
    if (options.rotary) {
        require_within({"rotary.base", options.rotary->rope.base, 1.0, any, true});
        // For larger positions the rounded angles no longer distinguish neighbouring positions.
        require_within({"rotary.position_start", static_cast<double>(options.rotary->position_start), 0.0, 1e9});
    }
}

void require_sizes(const KvLikeOptions& options) {
    if (options.tokens == 0 || options.head_dim == 0 || options.hidden == 0)
        throw usage_error(
            "a kv_like model of {} tokens, head dimension {} and hidden width {} is empty: give 1 or more",
            options.tokens, options.head_dim, options.hidden);
    if (options.head_dim % 2 != 0)
        throw usage_error("head dimension {} is odd (a kv_like model rotates pairs of channels): give an even number",
                          options.head_dim);
    if (options.tokens > stream_elements / options.hidden)
        throw usage_error("{} tokens of hidden width {} are too many for one stream (2^32 numbers): lower one of them",
                          options.tokens, options.hidden);
    const std::size_t most = std::min({options.tokens, options.head_dim, options.hidden});
    if (options.context.rank > most)
        throw usage_error(
            "a context of rank {} does not fit {} tokens of head dimension {} and hidden width {}: give at most {}",
            options.context.rank, options.tokens, options.head_dim, options.hidden, most);
    const std::size_t candidates = outlier_candidates(options).size();
    if (options.outliers.channels > candidates)
        throw usage_error("{} outlier channels do not fit (head dimension {} has {} channels{}): give at most {}{}",
                          options.outliers.channels, options.head_dim, candidates,
                          candidates < options.head_dim ? " in the slower half of its rotary pairs" : "", candidates,
                          candidates < options.head_dim ? ", or place = \"any\"" : "");
}

/// Eigenvalues of B, the covariance of the token part over the hidden coordinates; their mean is 1.
arma::vec hidden_eigenvalues(const KvLikeOptions& options) {
    arma::vec values(options.hidden);
    for (std::size_t k = 0; k < options.hidden; ++k)
        values(k) = std::exp(-options.noise.hidden_decay * (static_cast<double>(k) + 0.5) /
                             static_cast<double>(options.hidden));
    return values / arma::mean(values);
}

/// The token part, hidden x tokens. Tokens are columns, so that more tokens continue the same stream.
arma::mat draw_token_part(const KvLikeOptions& options, const Stream& stream) {
    arma::mat states(options.hidden, options.tokens);
    fill_entries(options.noise.entries, stream, {states.memptr(), states.n_elem});
    const double rho = options.noise.token_correlation;
    if (rho != 0.0)
        for (std::size_t t = 1; t < options.tokens; ++t)
            states.col(t) = rho * states.col(t - 1) + std::sqrt(1.0 - rho * rho) * states.col(t);
    states.each_col() %= arma::sqrt(hidden_eigenvalues(options) / static_cast<double>(options.hidden));
    states *= options.noise.scale;
    if (options.sink) states.col(0) *= options.sink->token_part;
    return states;
}

/// Strengths of the context directions; their squares sum to 1.
arma::rowvec direction_strengths(const KvContext& context) {
    arma::rowvec strengths(context.rank);
    for (std::size_t i = 0; i < context.rank; ++i) strengths(i) = std::pow(context.decay, static_cast<double>(i));
    return arma::normalise(strengths);
}

/// Coefficients times strengths of the context directions, tokens x rank.
arma::mat draw_course(const KvLikeOptions& options, const Stream& stream) {
    const auto& context = options.context;
    arma::mat course(context.rank, options.tokens);
    if (context.course == ContextCourse::random) {
        stream::fill_normal(stream, {course.memptr(), course.n_elem});
    } else {
        constexpr double full_turn = 2.0 * std::numbers::pi;
        for (std::size_t i = 0; i < context.rank; ++i) {
            const auto words = stream.words(static_cast<std::uint32_t>(i));
            const double frequency =
                (static_cast<double>(i) + (static_cast<double>(words[0]) + 0.5) * 0x1p-32) / context.period;
            const double phase = full_turn * (static_cast<double>(words[1]) + 0.5) * 0x1p-32;
            for (std::size_t t = 0; t < options.tokens; ++t)
                course(i, t) = std::numbers::sqrt2 * std::cos(full_turn * frequency * static_cast<double>(t) + phase);
        }
    }
    if (options.sink) course.col(0).zeros();
    arma::mat by_token = course.t();
    by_token.each_row() %= direction_strengths(context);
    return by_token;
}

/// A projection of (hidden + 1) x d entries N(0, 1/d). Its last row is the image of the sink's hidden state.
arma::mat draw_projection(const KvLikeOptions& options, const Stream& stream, std::uint64_t first) {
    arma::mat projection(options.hidden + 1, options.head_dim);
    stream::fill_normal(stream, first, {projection.memptr(), projection.n_elem});
    return projection / std::sqrt(static_cast<double>(options.head_dim));
}

struct Channels {
    arma::uvec outliers;
    arma::rowvec signs;      ///< of the outlier channels, 0 elsewhere
    arma::rowvec direction;  ///< the signs of the outliers, or of all candidates if there are no outliers, with norm 1
};

Channels draw_channels(const KvLikeOptions& options, const Stream& stream, std::size_t head) {
    std::vector<std::size_t> candidates = outlier_candidates(options);
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    arma::rowvec signs(options.head_dim);
    for (const std::size_t c : candidates) {
        const auto words = stream.words(static_cast<std::uint32_t>(head * options.head_dim + c));
        order.emplace_back(std::uint64_t{words[1]} << 32 | words[0], c);
        signs(c) = words[2] >> 31 != 0 ? -1.0 : 1.0;
    }
    std::sort(order.begin(), order.end());

    Channels channels;
    channels.outliers.set_size(options.outliers.channels);
    channels.signs.zeros(options.head_dim);
    for (std::size_t i = 0; i < options.outliers.channels; ++i) {
        channels.outliers(i) = order[i].second;
        channels.signs(order[i].second) = signs(order[i].second);
    }
    channels.outliers = arma::sort(channels.outliers);
    channels.direction = arma::normalise(options.outliers.channels > 0 ? channels.signs : signs);
    return channels;
}

bool has_outlier_mean(const KvLikeOptions& options) {
    return options.outliers.channels > 0 && options.outliers.mean > 0.0;
}

arma::mat column_covariance(const KvLikeOptions& options, const arma::mat& projection) {
    const double scale = options.noise.scale * options.noise.scale * static_cast<double>(options.head_dim) /
                         static_cast<double>(options.hidden);
    arma::mat weighted = projection;
    weighted.each_col() %= arma::sqrt(scale * hidden_eigenvalues(options));
    return weighted.t() * weighted;
}

/// Applies the rotary embedding to keys or queries (values have none).
arma::mat with_rotary(const KvLikeOptions& options, arma::mat rows) {
    if (!options.rotary) return rows;
    return apply_rope(rows, options.rotary->rope, static_cast<double>(options.rotary->position_start));
}

/// The hidden states of a replicate, common to all heads.
struct States {
    arma::mat token_part;  ///< hidden x tokens
    arma::mat course;      ///< tokens x rank
    arma::mat directions;  ///< hidden x rank
};

/// The projected context, times `strength`.
arma::mat context_rows(const States& states, double strength, const arma::mat& projection) {
    return strength * states.course * (states.directions.t() * projection);
}

}  // namespace

ContextCourse parse_context_course(std::string_view text) { return enum_named<ContextCourse>(text, "context course"); }

OutlierPlace parse_outlier_place(std::string_view text) {
    return enum_named<OutlierPlace>(text, "place of outlier channels");
}

void require_possible(const KvLikeOptions& options) {
    require_sizes(options);
    require_numbers(options);
}

Json describe(const KvLikeOptions& options) {
    const auto& [rank, decay, course, period, key, value, query] = options.context;
    const auto& [scale, entries, token_correlation, hidden_decay] = options.noise;
    Json sink;
    if (options.sink)
        sink = Json::object(
            {{"key", options.sink->key}, {"value", options.sink->value}, {"token_part", options.sink->token_part}});
    Json rotary;
    if (options.rotary)
        rotary = Json::object({{"base", options.rotary->rope.base},
                               {"style", rope_style_name(options.rotary->rope.style)},
                               {"position_start", static_cast<std::size_t>(options.rotary->position_start)}});
    return Json::object({{"kind", "kv_like"},
                         {"n", options.tokens},
                         {"d", options.head_dim},
                         {"hidden", options.hidden},
                         {"context", Json::object({{"rank", rank},
                                                   {"decay", decay},
                                                   {"course", enum_name(course)},
                                                   {"period", period},
                                                   {"key", key},
                                                   {"value", value},
                                                   {"query", query}})},
                         {"noise", Json::object({{"scale", scale},
                                                 {"entries", entries.text()},
                                                 {"token_correlation", token_correlation},
                                                 {"hidden_decay", hidden_decay}})},
                         {"outliers", Json::object({{"channels", options.outliers.channels},
                                                    {"mean", options.outliers.mean},
                                                    {"scale", options.outliers.scale},
                                                    {"place", enum_name(options.outliers.place)}})},
                         {"sink", std::move(sink)},
                         {"rotary", std::move(rotary)},
                         {"queries", Json::object({{"heads", options.queries.heads},
                                                   {"mean", options.queries.mean},
                                                   {"scale", options.queries.scale}})},
                         {"fresh_projections", options.fresh_projections}});
}

KvSignalRank signal_rank(const KvLikeOptions& options) {
    require_possible(options);
    const std::size_t plain_tokens = options.tokens - (options.sink ? 1 : 0);
    const std::size_t most = std::min(options.tokens, options.head_dim);
    const std::size_t context = std::min(options.context.rank, plain_tokens);
    const bool key_mean = has_outlier_mean(options) && plain_tokens > 0;
    const bool key_sink = options.sink && options.sink->key > 0.0;
    const bool value_sink = options.sink && options.sink->value > 0.0;
    return {std::min(most, (options.context.key > 0.0 ? context : 0) + (key_mean || key_sink ? 1 : 0)),
            std::min(most, (options.context.value > 0.0 ? context : 0) + (value_sink ? 1 : 0))};
}

arma::mat row_covariance(const KvLikeOptions& options) {
    require_possible(options);
    arma::mat covariance(options.tokens, options.tokens);
    for (arma::uword j = 0; j < options.tokens; ++j)
        for (arma::uword i = 0; i < options.tokens; ++i)
            covariance(i, j) = std::pow(options.noise.token_correlation, static_cast<double>(i > j ? i - j : j - i));
    if (options.sink) {
        covariance.row(0) *= options.sink->token_part;
        covariance.col(0) *= options.sink->token_part;
    }
    return covariance;
}

arma::mat KvLikeModel::key_covariance(const KvLikeOptions& options) const {
    return column_covariance(options, key_projection);
}

arma::mat KvLikeModel::value_covariance(const KvLikeOptions& options) const {
    return column_covariance(options, value_projection);
}

KvLikeHead::KvLikeHead(const KvLikeOptions& options, const stream::StudySeed& seed, std::string cell, std::size_t head)
    : options_(options), seed_(seed), cell_(std::move(cell)), head_(head) {
    require_possible(options_);
    const std::uint64_t projection = (std::uint64_t{options_.hidden} + 1) * options_.head_dim;
    const std::uint64_t per_head = projection * std::max<std::uint64_t>(2, options_.queries.heads);
    if (options_.queries.heads > stream_elements / projection || head_ >= stream_elements / per_head)
        throw usage_error(
            "head {} with {} query heads, hidden width {} and head dimension {} is beyond the 2^32 numbers of a "
            "stream: lower one of them",
            head_, options_.queries.heads, options_.hidden, options_.head_dim);
    if (!options_.fresh_projections) shared_ = draw_model(0);
}

KvLikeModel KvLikeHead::model(std::uint64_t replicate) const { return shared_ ? *shared_ : draw_model(replicate); }

KvLikeModel KvLikeHead::draw_model(std::uint64_t replicate) const {
    const Stream stream(seed_, cell_, Role::projection, replicate);
    const std::uint64_t size = (std::uint64_t{options_.hidden} + 1) * options_.head_dim;
    const Channels channels = draw_channels(options_, Stream(seed_, cell_, Role::channel, replicate), head_);
    KvLikeModel model;
    model.outlier_channels = channels.outliers;
    model.key_mean = channels.signs * (options_.outliers.mean / std::sqrt(static_cast<double>(options_.head_dim)));
    model.query_mean = -options_.queries.mean * channels.direction;

    model.key_projection = draw_projection(options_, stream, 2 * head_ * size).head_rows(options_.hidden);
    for (const auto c : channels.outliers) model.key_projection.col(c) *= options_.outliers.scale;
    const arma::mat value = draw_projection(options_, stream, (2 * head_ + 1) * size);
    model.value_projection = value.head_rows(options_.hidden);
    // Queries use the upper half of the stream, so that the number of query heads does not affect keys and values.
    for (std::size_t q = 0; q < options_.queries.heads; ++q)
        model.query_projections.emplace_back(
            draw_projection(options_, stream, stream_elements + (head_ * options_.queries.heads + q) * size)
                .head_rows(options_.hidden));
    if (options_.sink) {
        model.sink_key = -options_.sink->key * channels.direction;
        model.sink_value = options_.sink->value * arma::normalise(arma::rowvec(value.row(options_.hidden)));
    }
    return model;
}

KvLikeSample KvLikeHead::sample(std::uint64_t replicate) const {
    const std::optional<KvLikeModel> fresh = shared_ ? std::nullopt : std::optional(draw_model(replicate));
    const KvLikeModel& model = shared_ ? *shared_ : *fresh;
    const States states{draw_token_part(options_, Stream(seed_, cell_, Role::noise, replicate)),
                        draw_course(options_, Stream(seed_, cell_, Role::left_vectors, replicate)),
                        stream::haar_frame(Stream(seed_, cell_, Role::right_vectors, replicate), options_.hidden,
                                           options_.context.rank)};

    KvLikeSample sample;
    sample.course = states.course;
    sample.key.signal = context_rows(states, options_.context.key, model.key_projection);
    sample.key.signal.each_row() += model.key_mean;
    sample.value.signal = context_rows(states, options_.context.value, model.value_projection);
    if (options_.sink) {
        sample.key.signal.row(0) = model.sink_key;
        sample.value.signal.row(0) = model.sink_value;
    }
    sample.key.signal = with_rotary(options_, std::move(sample.key.signal));
    sample.key.noise = with_rotary(options_, states.token_part.t() * model.key_projection);
    sample.value.noise = states.token_part.t() * model.value_projection;
    for (KvLikePart* part : {&sample.key, &sample.value}) part->observed = part->signal + part->noise;

    const double query_scale = options_.queries.scale * static_cast<double>(options_.head_dim);
    for (const auto& projection : model.query_projections) {
        arma::mat query = context_rows(states, options_.context.query, projection) + states.token_part.t() * projection;
        query.each_row() += model.query_mean;
        sample.queries.push_back(with_rotary(options_, query * query_scale));
    }
    return sample;
}

TrueSignal true_signal(const arma::mat& signal, double floor) {
    TrueSignal found;
    if (signal.is_empty() || !arma::any(arma::vectorise(signal)))
        return {arma::vec(), arma::mat(signal.n_rows, 0), arma::mat(signal.n_cols, 0)};
    if (!arma::svd_econ(found.left, found.singular_values, found.right, signal))
        throw postcondition_error("the singular values of a {} x {} signal cannot be computed", signal.n_rows,
                                  signal.n_cols);
    const arma::uvec kept = arma::find(found.singular_values > floor * found.singular_values(0));
    found.singular_values = found.singular_values.head(kept.n_elem);
    found.left = found.left.head_cols(kept.n_elem);
    found.right = found.right.head_cols(kept.n_elem);
    return found;
}

}  // namespace spiked::sim
