#pragma once
#include <cstddef>

/// The inner loops of batch_decomposition.hpp, once for each instruction set. Each set is compiled from the same
/// templates (bidiagonalisation.hpp, reflectors.hpp, bidiagonal_values.hpp, twisted_vectors.hpp) with its own
/// registers.
namespace spiked::estimators::kernels {

/// Columns start at multiples of this many bytes, so that every register load is aligned; what pads them is zero.
inline constexpr std::size_t alignment = 64;
/// Blocks whose singular values are found together, one a lane.
inline constexpr std::size_t value_lanes = 16;
/// Singular values whose vectors are found together.
inline constexpr std::size_t vector_lanes = 16;
/// Reflectors applied together.
inline constexpr std::size_t reflector_group = 4;
/// Columns that the reduction takes together: as many zero columns less one follow the block, and as many zero entries
/// less one follow those of each right reflector.
inline constexpr std::size_t reduction_panel = 4;
/// Columns of what reflectors are applied to come in multiples of this.
inline constexpr std::size_t column_tile = 4;

/// A = H_0 H_1 .. B (G_0 G_1 ..)^T with B upper bidiagonal, rows >= columns, H = I - scale u u^T, G = I - scale v v^T.
/// `left` holds A, then u_k in column k, which has zeros before entry k from the start of the group of reflectors on;
/// `right` gets v_k in column k, which begins at entry k + 1 in the same way.
template <class Real>
struct Reduction {
    std::size_t rows, columns;
    Real* left;
    std::size_t left_stride;
    Real* right;
    std::size_t right_stride;
    Real* left_scale;
    Real* right_scale;
    double* diagonal;
    double* off_diagonal;
    Real* row_work;     ///< 2 left_stride
    Real* column_work;  ///< right_stride
};

/// `value_lanes` symmetric tridiagonal matrices side by side: entry i of matrix `lane` at i * value_lanes + lane.
struct TridiagonalBatch {
    std::size_t size;
    double tolerance;  ///< square of an off-diagonal entry that counts as zero, as a share of the product of its
                       ///< neighbours
    double* diagonal;  ///< destroyed
    double* off_diagonal_squared;  ///< destroyed; the last row is zero
    double* eigenvalues;           ///< out: matrix after matrix, `size` each, in no order
    bool converged[value_lanes];   ///< in: false for matrices that are not there; out
    bool present[value_lanes];
};

/// The symmetric tridiagonal matrix with zero diagonal whose eigenvalues are plus and minus the singular values of a
/// bidiagonal matrix; entries of its eigenvectors alternate between right and left.
struct GolubKahan {
    std::size_t size;            ///< twice the size of the bidiagonal matrix
    const double* off_diagonal;  ///< size - 1 entries d_0, e_0, d_1, e_1, .., d_last
    double* work;                ///< 2 size vector_lanes
};

/// What reflectors are applied to; entries from the reflectors' length on are zero.
template <class Real>
struct Columns {
    Real* entries;
    std::size_t stride;
    std::size_t count;  ///< a multiple of column_tile
};

template <class Real>
struct Kernels {
    void (*bidiagonalise)(const Reduction<Real>& block);
    /// columns <- H_0 H_1 .. H_(count-1) columns; `left` or `right` of a Reduction.
    void (*apply_reflectors)(const Real* reflectors, std::size_t stride, const Real* scales, std::size_t count,
                             std::size_t length, const Columns<Real>& columns);
    /// Largest size of an entry; NaN where one is NaN or infinite.
    double (*largest)(const Real* entries, std::size_t count);
    void (*eigenvalues)(TridiagonalBatch& batch);
    /// For each lane the number of singular values of a bidiagonal matrix below `points[lane]`. Squares of its entries.
    void (*count_below)(std::size_t size, const double* diagonal_squared, const double* off_diagonal_squared,
                        const double* points, double* counts);
    /// Eigenvectors of `vector_lanes` eigenvalues, with one entry equal to 1: entry i at i * vector_lanes + lane of
    /// `work`. Also the squares of the norms of their even and odd parts, and what eigenvalue times vector misses (the
    /// residual is a multiple of one unit vector).
    void (*twisted_vectors)(const GolubKahan& matrix, const double* eigenvalues, double* even_norm, double* odd_norm,
                            double* miss);
    /// Makes the last of `count` columns of norm 1 orthogonal to the others; returns the square of what was left of it.
    double (*orthogonalise)(double* columns, std::size_t stride, std::size_t length, std::size_t count);
};

/// Null where the processor or the compiler lacks them.
template <class Real>
[[nodiscard]] const Kernels<Real>* generic();
template <class Real>
[[nodiscard]] const Kernels<Real>* avx2();
template <class Real>
[[nodiscard]] const Kernels<Real>* avx512();

}  // namespace spiked::estimators::kernels
