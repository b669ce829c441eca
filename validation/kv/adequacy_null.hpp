#pragma once
#include <armadillo>
#include <vector>

// Laws of noise that `kv adequacy` fits to residuals and draws from. Rows are tokens, columns channels.

namespace spiked::validation {

/// Independent rows made AR(1) of the same variance, from the first row on.
void correlate_rows(arma::mat& rows, double correlation);

/// mean(a^2) / mean(a)^2 of the eigenvalues of AR(1) rows, for many rows.
[[nodiscard]] double row_moment(double correlation);

/// Z = A^{1/2} G C^{1/2} from residuals of one width: A AR(1) with their lag-one correlation of rows (at most .95
/// either way), C their covariance with everything beside the diagonal shrunk, so that its second moment is unbiased.
struct ResidualLaw {
    double correlation = 0.0;  ///< of neighbouring rows
    arma::mat root;            ///< d x d; root^T root is C
    arma::rowvec variances;    ///< of the channels of the residuals it is made of
    double unevenness = 1.0;   ///< kappa: largest over mean variance

    explicit ResidualLaw(const std::vector<const arma::mat*>& residuals);
    /// n x d standard normal entries made a draw.
    [[nodiscard]] arma::mat draw(arma::mat gaussian) const;
    /// Scales channels so that draws which lose what was lost have the variances of the residuals: `kept` are those of
    /// draws after the loss.
    void restore(const arma::rowvec& kept);
};

/// Standard deviations of the columns of noise with a square-root edge, variances exp(-c (j - 1/2) / d), AR(1) rows and
/// the first two moments of the given eigenvalues of Z Z^T (c at most 8).
[[nodiscard]] arma::rowvec regular_deviations(const std::vector<double>& eigenvalues, std::size_t rows,
                                              std::size_t columns, double correlation);

}  // namespace spiked::validation
