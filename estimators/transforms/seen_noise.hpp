#pragma once
#include <armadillo>
#include <optional>

#include "estimators/transforms/spectral_method.hpp"

namespace spiked::estimators {

/// What is known of the covariances A and B of the noise, each a matrix or its diagonal as one column.
struct KnownCovariances {
    std::optional<arma::mat> row;
    std::optional<arma::mat> column;
};

/// The same of the noise of a matrix with missing entries, of which entry (i, j) is seen with probability p_ij = 1 /
/// (u_i w_j) and then multiplied by u_i w_j. Entries of the noise keep their covariances, A_ij B_kl, but for the
/// variances, A_ii B_kk u_i w_k. That is separable where A and B are diagonal, with A_ii u_i and B_kk w_k, or where one
/// of them is and the weights of its side are equal, u: then the diagonal of the other is multiplied by u times its
/// weights. A side that is not known counts as white; it stays unknown where its weights are equal. Weights 0, of rows
/// and columns of which nothing is seen, leave their variances. No weights: all entries are seen. Throws usage_error
/// where the noise is not separable.
[[nodiscard]] KnownCovariances noise_of_seen(KnownCovariances whole, arma::vec row_weights, arma::vec column_weights);

/// The same restricted to the rows and columns that were kept.
[[nodiscard]] KnownNoise restricted(const KnownCovariances& whole, const arma::uvec& kept_rows,
                                    const arma::uvec& kept_columns);

/// Throws usage_error for `biwhiten` without options where entries are missing. It is for whole Poisson counts, and a
/// count m seen with probability p and divided by it has the variance m / p + (1/p - 1) m^2: the message gives the
/// options for that.
void reject_whole_counts(const SpectralMethod& method, double share_seen);

/// A sentence where entries are missing and the method's name gives the noise level (`sigma=`), which is then that of
/// entries divided by their probability of being seen. Empty for other methods.
[[nodiscard]] std::string note_on_known_level(const SpectralMethod& method, double share_seen);

}  // namespace spiked::estimators
