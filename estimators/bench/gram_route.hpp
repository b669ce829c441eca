#pragma once
#include <armadillo>
#include <vector>

namespace spiked::estimators {

/// The fastest route through LAPACK to all singular values and a few right vectors that is accurate for float data: the
/// Gram matrix X^T X formed in double, reduced to tridiagonal form (sytrd), its eigenvalues without vectors (sterf),
/// the leading vectors by inverse iteration (stein, ormtr). Left vectors are X v over the singular value.
///
/// For rows >= columns. Values are within about 1e-7 of the largest one, leading ones within 1e-14 relative. Where the
/// tridiagonal matrix splits, as for a diagonal block, the vectors may be wrong: this is a baseline of benchmarks.
class GramRoute {
public:
    GramRoute(std::size_t rows, std::size_t columns);

    /// All of them, descending; `block` is rows x columns. Throws input_error when LAPACK does not converge.
    [[nodiscard]] const std::vector<double>& singular_values(const arma::fmat& block);
    /// Of the last block: columns x count, largest singular value first.
    [[nodiscard]] arma::fmat right_vectors(std::size_t count);

private:
    arma::mat block_;
    arma::mat gram_;  // its reflectors after the reduction
    arma::vec diagonal_;
    arma::vec off_diagonal_;
    arma::vec reflectors_;
    arma::vec eigenvalues_;  // ascending
    arma::vec spare_;
    arma::vec work_;
    std::vector<int> ones_;
    std::vector<int> integers_;
    std::vector<double> singular_values_;
};

}  // namespace spiked::estimators
