#pragma once
#include <armadillo>
#include <vector>

// Noise laws that `kv adequacy` fits to residuals and draws from. Rows are tokens, columns are channels.

namespace spiked::validation {

/// Turns independent rows into a stationary AR(1) sequence with the same variance, from the first row on.
void correlate_rows(arma::mat& rows, double correlation);

/// mean(a^2) / mean(a)^2 of the eigenvalues a of the AR(1) covariance, in the limit of many rows.
[[nodiscard]] double row_moment(double correlation);

/// The law Z = A^{1/2} G C^{1/2}, fitted to residuals with the same number of columns. A is AR(1) with the lag-one
/// correlation of their rows, clamped to [-0.95, 0.95]. C is their column covariance with the off-diagonal entries
/// shrunk, so that its second moment is unbiased.
struct ResidualLaw {
    double correlation = 0.0;  ///< correlation of neighbouring rows
    arma::mat root;            ///< d x d; root^T root = C
    arma::rowvec variances;    ///< variances of the channels of the residuals
    double unevenness = 1.0;   ///< kappa: largest variance over mean variance

    explicit ResidualLaw(const std::vector<const arma::mat*>& residuals);
    /// Turns n x d standard normal entries into a draw from the law.
    [[nodiscard]] arma::mat draw(arma::mat gaussian) const;
    /// Rescales channels to compensate for variance that is lost when a signal is estimated and subtracted. `kept`: the
    /// variances of draws after this loss, which then equal those of the residuals.
    void restore(const arma::rowvec& kept);
};

/// Column standard deviations for noise with a square-root edge: AR(1) rows and column variances proportional to
/// exp(-c (j - 1/2) / d), with scale and c (at most 8) chosen so that the eigenvalues of Z Z^T have the first two
/// moments of the given eigenvalues.
[[nodiscard]] arma::rowvec regular_deviations(const std::vector<double>& eigenvalues, std::size_t rows,
                                              std::size_t columns, double correlation);

}  // namespace spiked::validation
