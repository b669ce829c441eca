#include "estimators/causal/causal_state.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

/// Variances are means over about this many tokens; those of a frozen basis begin with half of that.
constexpr double tracked_tokens = 64.0;
constexpr double frozen_weight = 32.0;
/// The expected square of a residual that was coded as 0, in D^2.
constexpr double zero_variance = 0.06;
constexpr double largest_residual = 0x1p40;
constexpr std::size_t tokens_between_costs = 4;

}  // namespace

CausalState::CausalState(const CausalOptions& options, double step, std::vector<double> factors, arma::rowvec sink)
    : options_(options),
      step_(step),
      factors_(std::move(factors)),
      sink_(std::move(sink)),
      moments_(factors_.size(), step, options.basis, options.predict),
      same_(options.same ? std::optional<SameTokens>(std::in_place, factors_.size(), options.sink) : std::nullopt),
      tracker_{.model = IndexModel(options.adapt)},
      frozen_{.model = IndexModel(options.adapt)},
      quantizer_(options.dependent) {
    renew_basis();
}

bool CausalState::updates_at(std::size_t token) const {
    if (token == options_.freeze) return true;
    const std::size_t update = options_.update;
    if (token >= update) return token % update == 0 || 2 * token == 3 * update;
    return 8 * token == update || 4 * token == update || 2 * token == update || 4 * token == 3 * update;
}

void CausalState::renew_basis() {
    basis_ = moments_.basis();
    if (same_)
        predictors_ = same_->predictors(basis_, step_, options_.predict);
    else
        predictors_.fresh = {basis_.correlation, {}, basis_.variance, basis_.tokens};
    const auto spread = [](const ChannelPredictor& predictor) {
        return ChannelTracker::Spread{predictor.variance,
                                      std::min(static_cast<double>(predictor.tokens), tracked_tokens)};
    };
    tracker_.fresh = spread(predictors_.fresh);
    tracker_.repeated = spread(predictors_.repeated);
    tracker_.last = basis_.last;
}

void CausalState::require_next(std::size_t rows) const {
    if (rows == 0 || rows > causal_block) throw precondition_error("a block of {} rows", rows);
    if (tokens_ % causal_block != 0)
        throw precondition_error("a block follows one of fewer than {} rows", causal_block);
}

RowMatrix CausalState::scaled(const arma::mat& rows) const {
    if (rows.n_cols != factors_.size()) throw precondition_error("{} columns for {}", rows.n_cols, factors_.size());
    RowMatrix found(rows.n_rows, rows.n_cols);
    for (std::size_t t = 0; t < found.rows; ++t) {
        // The sink is coded as a copy of the row after it.
        const std::size_t from = options_.sink && tokens_ == 0 && t == 0 && found.rows > 1 ? 1 : t;
        for (std::size_t i = 0; i < found.columns; ++i) {
            if (!std::isfinite(rows(t, i)))
                throw input_error("row {} has the entry {} (not a finite number): remove or replace it", tokens_ + t,
                                  rows(t, i));
            found.row(t)[i] = rows(from, i) * factors_[i];
        }
    }
    return found;
}

RowMatrix CausalState::rows_of(const RowMatrix& channels) const {
    RowMatrix rows = ordered_product(channels, basis_.vectors);
    for (std::size_t t = 0; t < rows.rows; ++t)
        for (std::size_t i = 0; i < rows.columns; ++i) rows.row(t)[i] += basis_.mean[i];
    return rows;
}

void CausalState::unscale_into(const RowMatrix& rows, std::size_t first, arma::mat& block) const {
    for (std::size_t t = 0; t < rows.rows; ++t)
        for (std::size_t i = 0; i < rows.columns; ++i) block(first + t, i) = rows.row(t)[i] / factors_[i];
}

RowMatrix CausalState::code_tokens(std::size_t first, std::size_t end, ChannelTracker& tracker,
                                   const CodeToken& code_token) const {
    const std::size_t m = factors_.size();
    RowMatrix channels(end - first, m);
    std::vector<double> prediction(m);
    std::vector<std::uint8_t> classes(m);
    std::vector<std::int64_t> levels(m);
    const double square = step_ * step_;
    for (std::size_t t = first; t < end; ++t) {
        const double* same = same_ ? same_->last(t - first, channels) : nullptr;
        const ChannelPredictor& predictor = same != nullptr ? predictors_.repeated : predictors_.fresh;
        ChannelTracker::Spread& spread = same != nullptr ? tracker.repeated : tracker.fresh;
        for (std::size_t k = 0; k < m; ++k) {
            prediction[k] = predictor.before[k] * tracker.last[k];
            if (same != nullptr) prediction[k] += predictor.same[k] * same[k];
            classes[k] = IndexModel::class_of(options_.dependent, spread.variance[k] / square);
        }
        code_token({t, prediction, classes, levels}, tracker);
        double* row = channels.row(t - first);
        for (std::size_t k = 0; k < m; ++k) {
            const double residual = static_cast<double>(levels[k]) * step_;
            row[k] = tracker.last[k] = prediction[k] + residual;
            if (options_.adapt)
                spread.variance[k] +=
                    (residual * residual + zero_variance * square - spread.variance[k]) / (spread.weight + 1.0);
        }
        spread.weight = std::min(spread.weight + 1.0, tracked_tokens);
    }
    return channels;
}

arma::mat CausalState::next_block(std::size_t rows, TokenIds ids,
                                  const std::function<void(std::size_t, std::size_t)>& begin_basis,
                                  const CodeToken& code_token) {
    if (same_ && ids.size() != rows) throw precondition_error("{} token ids for {} rows", ids.size(), rows);
    arma::mat block(rows, factors_.size());
    if (frozen()) {
        ChannelTracker tracker = frozen_;
        begin_basis(0, rows);
        unscale_into(rows_of(code_tokens(0, rows, tracker, code_token)), 0, block);
        tokens_ += rows;
        return block;
    }
    const std::size_t start = tokens_;
    for (std::size_t first = 0; first < rows;) {
        std::size_t end = first + 1;
        while (end < rows && !updates_at(start + end)) ++end;
        begin_basis(first, end);
        if (same_) same_->begin(basis_, ids.subspan(first, end - first));
        const RowMatrix decoded = rows_of(code_tokens(first, end, tracker_, code_token));
        unscale_into(decoded, first, block);
        moments_.add(decoded);
        if (same_) same_->add(decoded);
        tokens_ = start + end;
        if (updates_at(tokens_)) renew_basis();
        first = end;
    }
    if (frozen()) {
        frozen_ = tracker_;
        frozen_.last.assign(factors_.size(), 0.0);
        frozen_.fresh.weight = frozen_weight;
        frozen_.trellis = 0;
    }
    if (start == 0 && !sink_.is_empty()) block.row(0) = sink_;
    return block;
}

void CausalState::encode_token(std::span<const double> channels, const Token& token, ChannelTracker& tracker,
                               RangeEncoder& encoder) {
    const std::size_t m = factors_.size();
    residuals_.resize(m);
    indices_.resize(m);
    for (std::size_t k = 0; k < m; ++k) {
        residuals_[k] = (channels[k] - token.prediction[k]) / step_;
        if (!(std::abs(residuals_[k]) < largest_residual))
            throw usage_error("a row is {:g} steps from its prediction (at most 2^40): choose fewer bits",
                              residuals_[k]);
    }
    if (token.number % tokens_between_costs == 0) tracker.model.update_costs();
    quantizer_.search(residuals_, token.classes, tracker.model, options_.lambda, tracker.trellis, indices_);
    for (std::size_t k = 0; k < m; ++k) {
        const Levels levels = quantizer_.levels(tracker.trellis);
        tracker.model.encode(encoder, levels, token.classes[k], indices_[k]);
        token.levels[k] = DependentQuantizer::level(levels, indices_[k]);
        tracker.trellis = quantizer_.next(tracker.trellis, indices_[k]);
    }
}

void CausalState::decode_token(const Token& token, ChannelTracker& tracker, RangeDecoder& decoder) const {
    for (std::size_t k = 0; k < factors_.size(); ++k) {
        const Levels levels = quantizer_.levels(tracker.trellis);
        const std::int64_t index = tracker.model.decode(decoder, levels, token.classes[k]);
        token.levels[k] = DependentQuantizer::level(levels, index);
        tracker.trellis = quantizer_.next(tracker.trellis, index);
    }
}

arma::mat CausalState::encode(const arma::mat& rows, TokenIds ids, std::vector<std::uint8_t>& bytes) {
    require_next(rows.n_rows);
    const RowMatrix all = scaled(rows);
    RowMatrix channels;
    std::size_t origin = 0;
    RangeEncoder encoder;
    arma::mat decoded = next_block(
        rows.n_rows, ids,
        [&](std::size_t first, std::size_t end) {
            RowMatrix centred(end - first, all.columns);
            for (std::size_t t = first; t < end; ++t)
                for (std::size_t i = 0; i < all.columns; ++i)
                    centred.row(t - first)[i] = all.row(t)[i] - basis_.mean[i];
            channels = ordered_product(centred, basis_.columns);
            origin = first;
        },
        [&](const Token& token, ChannelTracker& tracker) {
            encode_token({channels.row(token.number - origin), all.columns}, token, tracker, encoder);
        });
    bytes = encoder.finish();
    return decoded;
}

arma::mat CausalState::decode(std::span<const std::uint8_t> bytes, std::size_t rows, TokenIds ids) {
    require_next(rows);
    RangeDecoder decoder(bytes);
    arma::mat decoded = next_block(
        rows, ids, [](std::size_t, std::size_t) {},
        [&](const Token& token, ChannelTracker& tracker) { decode_token(token, tracker, decoder); });
    decoder.require_end();
    return decoded;
}

arma::mat CausalState::decode_frozen(std::span<const std::uint8_t> bytes, std::size_t rows) const {
    if (!frozen()) throw precondition_error("the blocks up to the freeze have not been decoded");
    if (rows == 0 || rows > causal_block) throw precondition_error("a block of {} rows", rows);
    RangeDecoder decoder(bytes);
    ChannelTracker tracker = frozen_;
    const RowMatrix channels = code_tokens(
        0, rows, tracker, [&](const Token& token, ChannelTracker& state) { decode_token(token, state, decoder); });
    decoder.require_end();
    arma::mat block(rows, factors_.size());
    unscale_into(rows_of(channels), 0, block);
    return block;
}

std::size_t CausalState::bytes() const {
    std::size_t sum = moments_.bytes() + basis_.bytes() + sizeof(double) * (factors_.size() + sink_.n_elem);
    if (same_) sum += same_->bytes();
    for (const ChannelTracker* tracker : {&tracker_, &frozen_})
        sum += sizeof(double) * (tracker->fresh.variance.size() + tracker->last.size()) + tracker->model.bytes();
    return sum;
}

}  // namespace spiked::estimators
