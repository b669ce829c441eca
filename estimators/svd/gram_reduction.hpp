#pragma once
#include <armadillo>
#include <cstddef>

#include "estimators/svd/aligned_array.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

namespace spiked::estimators {

/// Reduces a tall double block A to the bidiagonal matrix B of its right reflectors, A^T A = (G_0 G_1 ..) B^T B (G_0
/// G_1 ..)^T: the Gram matrix is made tridiagonal, and the tridiagonal matrix is factored (Cholesky). This takes half
/// the work of reflectors on both sides or less, because the block is read once only. The price is an error of a few
/// epsilon s1^2 / s in a singular value s. The left vectors of A are A v / s.
class GramReduction {
public:
    /// Whether this method is faster for blocks of these sides.
    [[nodiscard]] static bool serves(std::size_t long_side, std::size_t short_side) {
        return short_side > 1 && 2 * long_side >= 3 * short_side;
    }
    /// Values above the first fraction of the largest one are accurate (1e-12 s1 and better). Vectors are used only for
    /// values above the second fraction, so that left vectors are orthogonal.
    static constexpr double smallest_value = 1e-3;
    static constexpr double smallest_for_vectors = 0.05;

    GramReduction(void (*tridiagonalise)(const kernels::SymmetricReduction&), std::size_t long_side,
                  std::size_t short_side);

    /// `right`, `scales`, `diagonal` and `off_diagonal` as in kernels::Reduction. Returns false when values are too
    /// small.
    [[nodiscard]] bool reduce(const double* entries, std::size_t stride, double* right, double* scales,
                              double* diagonal, double* off_diagonal);
    /// Computes the left vectors of the same block from its right ones. `left` must have its size already.
    void left_vectors(const double* entries, std::size_t stride, const arma::mat& right, arma::mat& left) const;

private:
    void (*tridiagonalise_)(const kernels::SymmetricReduction&);
    std::size_t long_side_, short_side_, stride_;
    AlignedArray<double> gram_, work_;
};

}  // namespace spiked::estimators
