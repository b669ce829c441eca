#pragma once
#include <armadillo>
#include <cstddef>
#include <vector>

#include "core/runtime/parallel.hpp"
#include "estimators/svd/aligned_array.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

namespace spiked::estimators {

/// Columns that start at cache lines, with zero rows behind them up to one. They grow at the end.
class Columns {
public:
    explicit Columns(std::size_t rows) : rows_(rows), stride_(kernels::padded<double>(rows)) {}

    [[nodiscard]] std::size_t rows() const { return rows_; }
    [[nodiscard]] std::size_t stride() const { return stride_; }
    [[nodiscard]] double* at(std::size_t column) { return entries_.data() + column * stride_; }
    [[nodiscard]] const double* at(std::size_t column) const { return entries_.data() + column * stride_; }
    /// Makes room for this number of columns and keeps those that are there.
    void reserve(std::size_t count);
    /// The first `count` columns times a matrix of `count` rows.
    [[nodiscard]] arma::mat times(std::size_t count, const arma::mat& weights) const;

private:
    std::size_t rows_, stride_;
    AlignedArray<double> entries_;
};

/// Block Golub-Kahan-Lanczos bidiagonalisation of an n x d block A (Golub, Luk and Overton 1981) from a random start of
/// `width` vectors: orthonormal bases U (n x m) and V (d x m) with A V = U B, B m x m and upper triangular, and A^T U =
/// V B^T + W T E^T, where W are `width` further vectors and E selects the last `width` rows. The space of V is the one
/// of block Krylov iteration (Musco and Musco 2015), so that copies of a value are found up to `width` times.
///
/// Every new vector is made orthogonal to all before it, twice; a vector of rounding errors is replaced by a random
/// one. The start is the same for every block with as many columns, and results are the same, bit for bit, for any
/// number of threads; they depend on the instruction set and the BLAS.
///
/// A step of `width` vectors reads a copy of the block twice and the bases eight times. Memory: the copy, and 8 (n + d)
/// m bytes for the bases, up to 2.5 times that for a moment while one grows.
class BlockKrylov {
public:
    /// `width` is a multiple of 8, at most the short side. Throws input_error when the block holds NaN or infinity.
    BlockKrylov(const arma::mat& block, std::size_t width, std::size_t threads);

    /// The dimension m; 0 at first.
    [[nodiscard]] std::size_t dimension() const { return dimension_; }
    /// Whether another step would leave room for the vectors W.
    [[nodiscard]] bool can_grow() const;
    /// Adds `width` vectors to both bases.
    void grow();

    /// Leading values of B, descending, its vectors p and q, and |A^T u - value v| of each value with u = U p and v = V
    /// q, where A v - value u is 0 but for rounding; in the scale of the block times a power of two.
    struct Ritz {
        std::vector<double> values;
        arma::mat left, right;
        std::vector<double> residuals;
    };
    [[nodiscard]] Ritz leading(std::size_t count) const;
    /// A norm below which a residual is nothing but rounding errors, in the same scale.
    [[nodiscard]] double rounding() const { return rounding_; }

    /// The singular values found, in the scale of the block.
    [[nodiscard]] std::vector<double> values(const Ritz& found) const;
    [[nodiscard]] arma::mat left_vectors(const Ritz& found) const { return left_.times(dimension_, found.left); }
    [[nodiscard]] arma::mat right_vectors(const Ritz& found) const { return right_.times(dimension_, found.right); }

private:
    void draw(double* column, std::size_t length);
    void multiply(const Columns& block, std::size_t columns, const double* panel, std::size_t panel_stride,
                  double* result, std::size_t result_stride);
    void project(const Columns& block, std::size_t columns, const double* panel, double* result);
    [[nodiscard]] arma::mat take_out(Columns& basis, std::size_t before);
    [[nodiscard]] arma::mat make_orthonormal(double* columns, std::size_t stride, std::size_t rows);
    /// The last `width` columns = (columns before them) C + (what becomes of them) R.
    struct Coefficients {
        arma::mat before, triangle;
    };
    Coefficients orthonormalise(Columns& basis, std::size_t before);

    std::size_t width_;
    const kernels::Kernels<double>& kernels_;
    ThreadTeam team_;
    Columns copy_;  ///< of the block, times a power of two
    std::size_t columns_;
    int exponent_ = 0;
    double rounding_ = 0.0;
    Columns left_, right_;
    std::size_t dimension_ = 0;
    std::uint64_t drawn_ = 0;
    arma::mat projected_;  ///< B
    arma::mat rest_;       ///< T
};

}  // namespace spiked::estimators
