#pragma once
#include <armadillo>
#include <cstddef>

#include "estimators/svd/aligned_array.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

namespace spiked::estimators {

/// A tall double block A to the bidiagonal B of its right reflectors, A^T A = (G_0 G_1 ..) B^T B (G_0 G_1 ..)^T: the
/// Gram matrix is made tridiagonal and that one factored (Cholesky). Half the work of reflectors on both sides and
/// less, as the block is read once; the price are errors of a few epsilon s1^2 / s in a singular value s. The left
/// vectors of A are A v / s.
class GramReduction {
public:
    /// Whether it pays.
    [[nodiscard]] static bool serves(std::size_t long_side, std::size_t short_side) {
        return short_side > 1 && 2 * long_side >= 3 * short_side;
    }
    /// What can be trusted: values above this share of the largest one (1e-12 s1 and better), and vectors of those
    /// above the other one, so that the left ones are orthogonal.
    static constexpr double smallest_value = 1e-3;
    static constexpr double smallest_for_vectors = 0.05;

    GramReduction(void (*tridiagonalise)(const kernels::SymmetricReduction&), std::size_t long_side,
                  std::size_t short_side);

    /// `right`, `scales`, `diagonal` and `off_diagonal` as in kernels::Reduction. False where values are too small.
    [[nodiscard]] bool reduce(const double* entries, std::size_t stride, double* right, double* scales,
                              double* diagonal, double* off_diagonal);
    /// Of the same block. `left` has its size.
    void left_vectors(const double* entries, std::size_t stride, const arma::mat& right, arma::mat& left) const;

private:
    void (*tridiagonalise_)(const kernels::SymmetricReduction&);
    std::size_t long_side_, short_side_, stride_;
    AlignedArray<double> gram_, work_;
};

}  // namespace spiked::estimators
