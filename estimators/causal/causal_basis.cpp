#include "estimators/causal/causal_basis.hpp"

#include <algorithm>

#include "estimators/causal/deterministic_eigen.hpp"

namespace spiked::estimators {
namespace {

/// A matrix of one row.
RowMatrix as_row(const std::vector<double>& entries) {
    RowMatrix row(1, entries.size());
    row.entries = entries;
    return row;
}

RowMatrix row_range(const RowMatrix& rows, std::size_t first, std::size_t count) {
    RowMatrix part(count, rows.columns);
    std::copy_n(rows.row(first), count * rows.columns, part.entries.begin());
    return part;
}

constexpr std::size_t least_correlated_tokens = 16;
constexpr double most_correlation = 0.95;
/// The part of the quantizer's error in decoded variances, and what is left of a variance of 0, in D^2.
constexpr double error_variance = 0.08;
constexpr double least_variance = 0.06;
/// The prior of variances: a quarter of their mean, with the weight of 8 tokens.
constexpr double prior_tokens = 8.0;
constexpr double prior_share = 0.25;
constexpr double first_variance = 4.0;

}  // namespace

DecodedMoments::DecodedMoments(std::size_t channels, double step, bool rotate, bool correlate)
    : step_(step),
      rotate_(rotate),
      correlate_(correlate),
      sum_(channels),
      first_(channels),
      last_(channels),
      products_(channels, channels),
      lagged_(correlate ? RowMatrix(channels, channels) : RowMatrix()) {}

void DecodedMoments::add(const RowMatrix& rows) {
    if (rows.rows == 0) return;
    add_outer_products(products_, rows, rows);
    if (correlate_) {
        if (tokens_ > 0) add_outer_products(lagged_, row_range(rows, 0, 1), as_row(last_));
        add_outer_products(lagged_, row_range(rows, 1, rows.rows - 1), row_range(rows, 0, rows.rows - 1));
    }
    if (tokens_ == 0) std::copy_n(rows.row(0), rows.columns, first_.begin());
    for (std::size_t t = 0; t < rows.rows; ++t)
        for (std::size_t i = 0; i < rows.columns; ++i) sum_[i] += rows.row(t)[i];
    std::copy_n(rows.row(rows.rows - 1), rows.columns, last_.begin());
    tokens_ += rows.rows;
}

ChannelBasis DecodedMoments::basis() const {
    const std::size_t m = sum_.size();
    ChannelBasis found;
    found.tokens = tokens_;
    found.mean.assign(m, 0.0);
    found.correlation.assign(m, 0.0);
    found.last.assign(m, 0.0);
    SymmetricEigen eigen{std::vector<double>(m, 0.0), RowMatrix(m, m)};
    for (std::size_t i = 0; i < m; ++i) eigen.vectors.row(i)[i] = 1.0;
    double prior = first_variance * step_ * step_;
    if (tokens_ > 0) {
        const auto n = static_cast<double>(tokens_);
        for (std::size_t i = 0; i < m; ++i) found.mean[i] = sum_[i] / n;
        RowMatrix covariance(m, m);
        double trace = 0.0;
        for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < m; ++j)
                covariance.row(i)[j] = products_.row(i)[j] / n - found.mean[i] * found.mean[j];
            eigen.values[i] = covariance.row(i)[i];
            trace += covariance.row(i)[i];
        }
        if (rotate_ && tokens_ > 1) eigen = deterministic_eigen(std::move(covariance));
        for (double& value : eigen.values) value = std::max(value, 0.0);
        prior = prior_share * std::max(trace, 0.0) / static_cast<double>(m) * prior_tokens / (n + prior_tokens);
    }
    found.vectors = std::move(eigen.vectors);
    found.columns = transposed(found.vectors);
    found.variance = eigen.values;
    if (tokens_ > 0) correlate(found, eigen.values);
    for (double& variance : found.variance) variance += prior + least_variance * step_ * step_;
    return found;
}

void DecodedMoments::correlate(ChannelBasis& basis, const std::vector<double>& eigenvalues) const {
    const std::size_t m = sum_.size();
    const auto n = static_cast<double>(tokens_);
    const std::vector<double> mean = ordered_product(as_row(basis.mean), basis.columns).entries;
    const std::vector<double> first = ordered_product(as_row(first_), basis.columns).entries;
    const std::vector<double> last = ordered_product(as_row(last_), basis.columns).entries;
    for (std::size_t k = 0; k < m; ++k) basis.last[k] = last[k] - mean[k];
    if (!correlate_ || tokens_ < least_correlated_tokens) return;
    const RowMatrix in_basis = ordered_product(lagged_, basis.columns);
    std::vector<double> lagged(m, 0.0);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t k = 0; k < m; ++k) lagged[k] += basis.columns.row(i)[k] * in_basis.row(i)[k];
    for (std::size_t k = 0; k < m; ++k) {
        // Sums over the pairs (t, t - 1) of deviations from the mean.
        const double sum = n * mean[k];
        const double across =
            lagged[k] - mean[k] * (sum - first[k]) - mean[k] * (sum - last[k]) + (n - 1.0) * mean[k] * mean[k];
        const double total = n * eigenvalues[k];
        const double before = std::max(0.0, total - (last[k] - mean[k]) * (last[k] - mean[k]));
        const double after = std::max(0.0, total - (first[k] - mean[k]) * (first[k] - mean[k]));
        const double slope = across / (before * (1.0 + 4.0 / n) + n * error_variance * step_ * step_);
        const double used = std::clamp(slope, 0.0, most_correlation);
        basis.correlation[k] = used;
        basis.variance[k] = std::max(0.0, (after - 2.0 * used * across + used * used * before) / (n - 1.0));
    }
}

std::size_t DecodedMoments::bytes() const {
    return sizeof(double) *
           (sum_.size() + first_.size() + last_.size() + products_.entries.size() + lagged_.entries.size());
}

std::size_t ChannelBasis::bytes() const {
    return sizeof(double) * (mean.size() + vectors.entries.size() + columns.entries.size() + correlation.size() +
                             variance.size() + last.size());
}

}  // namespace spiked::estimators
