#include "estimators/causal/same_token.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::estimators {
namespace {

constexpr std::size_t fitted_rows = 512;
constexpr std::size_t least_rows = 16;
/// The weight of the variances of the basis, in rows.
constexpr double basis_rows = 8.0;
/// As for a basis: the part of the quantizer's error in decoded squares, and what is left of a variance of 0, in D^2.
constexpr double decoding_error = 0.08;
constexpr double least_left = 0.06;

/// Sums over rows t of the products of y(t), u = y(t - 1) and v = the row of the same token, in one channel.
struct RowSums {
    double yy = 0.0, uu = 0.0, vv = 0.0, uv = 0.0, uy = 0.0, vy = 0.0;

    void add(double y, double u, double v) {
        yy += y * y;
        uu += u * u;
        vv += v * v;
        uv += u * v;
        uy += u * y;
        vy += v * y;
    }
    [[nodiscard]] double left(double a, double b) const {
        return std::max(0.0, yy - 2.0 * a * uy - 2.0 * b * vy + a * a * uu + 2.0 * a * b * uv + b * b * vv);
    }
};

/// Sets one channel of a predictor to the solution of the normal equations of n rows.
void solve(const RowSums& sums, double n, double square, std::size_t k, ChannelPredictor& predictor) {
    const double ridge = n * decoding_error * square;
    const double uu = sums.uu * (1.0 + 4.0 / n) + ridge;
    const double vv = sums.vv * (1.0 + 4.0 / n) + ridge;
    const double determinant = uu * vv - sums.uv * sums.uv;
    double a = 0.0;
    double b = 0.0;
    if (determinant > 0.0) {
        a = (vv * sums.uy - sums.uv * sums.vy) / determinant;
        b = (uu * sums.vy - sums.uv * sums.uy) / determinant;
    }
    // So that damaged bytes give numbers that grow no faster than the residuals' sum.
    const double size = std::max(1.0, std::abs(a) + std::abs(b));
    a /= size;
    b /= size;
    predictor.before[k] = a;
    predictor.same[k] = b;
    predictor.variance[k] =
        (sums.left(a, b) + basis_rows * predictor.variance[k]) / (n + basis_rows) + least_left * square;
}

}  // namespace

RowMatrix SameTokens::in_channels(const ChannelBasis& basis, const std::vector<std::size_t>& places) const {
    RowMatrix centred(places.size(), channels_);
    for (std::size_t t = 0; t < places.size(); ++t)
        for (std::size_t i = 0; i < channels_; ++i)
            centred.row(t)[i] = rows_[places[t] * channels_ + i] - basis.mean[i];
    return ordered_product(centred, basis.columns);
}

void SameTokens::begin(const ChannelBasis& basis, std::span<const std::int32_t> ids) {
    std::vector<std::size_t> places;
    projected_.assign(ids.size(), none);
    last_.resize(tokens());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::size_t row = tokens() + i;
        const auto found = seen_.find(ids[i]);
        last_.push_back(found == seen_.end() ? none : found->second);
        if (last_.back() < tokens()) {
            projected_[i] = places.size();
            places.push_back(last_.back());
        }
        if (!sink_ || row > 0) seen_[ids[i]] = row;
    }
    earlier_ = in_channels(basis, places);
}

const double* SameTokens::last(std::size_t i, const RowMatrix& begun) const {
    if (projected_[i] != none) return earlier_.row(projected_[i]);
    const std::size_t row = last_[tokens() + i];
    return row == none ? nullptr : begun.row(row - tokens());
}

void SameTokens::add(const RowMatrix& rows) { rows_.insert(rows_.end(), rows.entries.begin(), rows.entries.end()); }

SameTokenPredictors SameTokens::predictors(const ChannelBasis& basis, double step, bool before) const {
    const ChannelPredictor of_basis{basis.correlation, std::vector<double>(channels_), basis.variance, basis.tokens};
    SameTokenPredictors found{of_basis, of_basis};
    const std::size_t end = tokens();
    const std::size_t first = end - std::min(end, fitted_rows);
    std::vector<std::size_t> places;
    for (std::size_t t = first; t < end; ++t) places.push_back(t);
    const RowMatrix channels = in_channels(basis, places);
    const std::vector<double> nothing(channels_);
    for (ChannelPredictor* predictor : {&found.repeated, &found.fresh}) {
        std::vector<RowSums> sums(channels_);
        std::size_t n = 0;
        for (std::size_t t = first + 1; t < end; ++t) {
            const bool repeated = last_[t] != none;
            // Rows whose last one is out of reach are of neither kind.
            if (repeated != (predictor == &found.repeated) || (repeated && last_[t] < first)) continue;
            ++n;
            const double* y = channels.row(t - first);
            const double* u = before ? channels.row(t - first - 1) : nothing.data();
            const double* v = repeated ? channels.row(last_[t] - first) : nothing.data();
            for (std::size_t k = 0; k < channels_; ++k) sums[k].add(y[k], u[k], v[k]);
        }
        if (n < least_rows) continue;
        predictor->tokens = n;
        for (std::size_t k = 0; k < channels_; ++k) solve(sums[k], static_cast<double>(n), step * step, k, *predictor);
    }
    return found;
}

std::size_t SameTokens::bytes() const {
    constexpr std::size_t node = 48;
    return sizeof(double) * (rows_.size() + earlier_.entries.size()) +
           sizeof(std::size_t) * (last_.size() + projected_.size()) + node * seen_.size();
}

}  // namespace spiked::estimators
