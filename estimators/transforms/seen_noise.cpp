#include "estimators/transforms/seen_noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

bool is_correlated(const std::optional<arma::mat>& covariance) { return covariance && covariance->n_cols > 1; }

bool all_equal(const arma::vec& weights) {
    return std::all_of(weights.begin(), weights.end(), [&](double weight) { return weight == weights[0]; });
}

/// Multiplies the second weights by the first, which are equal.
void move_weight(arma::vec& from, arma::vec& to) {
    to *= from[0];
    from.ones();
}

void multiply_variances(std::optional<arma::mat>& covariance, const arma::vec& weights) {
    if (!covariance && arma::all(weights == 1.0)) return;
    if (is_correlated(covariance))
        covariance->diag() %= weights;
    else
        covariance = covariance ? arma::mat(*covariance % weights) : arma::mat(weights);
}

std::optional<NoiseCovariance> restricted(const std::optional<arma::mat>& covariance, const arma::uvec& kept) {
    if (!covariance) return std::nullopt;
    const auto whole =
        covariance->n_cols == 1 ? NoiseCovariance::diagonal(*covariance) : NoiseCovariance::full(*covariance);
    return whole.restricted(kept);
}

}  // namespace

KnownCovariances noise_of_seen(KnownCovariances whole, arma::vec row_weights, arma::vec column_weights) {
    if (row_weights.is_empty() || (!whole.row && !whole.column)) return whole;
    row_weights.replace(0.0, 1.0);
    column_weights.replace(0.0, 1.0);
    const bool rows = is_correlated(whole.row), columns = is_correlated(whole.column);
    if (rows && columns)
        throw usage_error(
            "rows and columns of the noise are both correlated (with entries missing, its law is then not separable): "
            "leave one of the covariances out, or give its variances alone");
    if ((rows && !all_equal(column_weights)) || (columns && !all_equal(row_weights)))
        throw usage_error(
            "{0} of the noise are correlated and {1} have weights of their own (with entries missing, its law is then "
            "not separable): weight {0} only, or uniformly",
            rows ? "rows" : "columns", rows ? "columns" : "rows");
    // A weight that is the same everywhere goes to the side that is correlated, or is alone known.
    if (all_equal(column_weights) && (rows || !whole.column))
        move_weight(column_weights, row_weights);
    else if (all_equal(row_weights) && (columns || !whole.row))
        move_weight(row_weights, column_weights);
    multiply_variances(whole.row, row_weights);
    multiply_variances(whole.column, column_weights);
    return whole;
}

KnownNoise restricted(const KnownCovariances& whole, const arma::uvec& kept_rows, const arma::uvec& kept_columns) {
    return {restricted(whole.row, kept_rows), restricted(whole.column, kept_columns)};
}

void reject_whole_counts(const SpectralMethod& method, double share_seen) {
    for (const Transform& transform : method.transforms)
        if (transform.whole_counts)
            throw usage_error(
                "{}: biwhiten without options is for whole Poisson counts (entries are missing, and those seen are "
                "divided by their probability): write biwhiten:fit, or biwhiten:b={:.4g}:c={:.4g}",
                method.name, 1.0 / share_seen, 1.0 / share_seen - 1.0);
}

std::string note_on_known_level(const SpectralMethod& method, double share_seen) {
    const auto sigma = method.spec.named.number("sigma");
    if (!sigma) return "";
    return fmt::format(
        "sigma={:g} is taken for the noise of entries as they are analysed, divided by their probability: if whole "
        "entries have it, give sigma={:.4g}, which is {:g} over the root of the share seen",
        *sigma, *sigma / std::sqrt(share_seen), *sigma);
}

}  // namespace spiked::estimators
