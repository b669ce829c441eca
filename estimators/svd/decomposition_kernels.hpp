#pragma once
#include <cstddef>

/// The inner loops of batch_decomposition.hpp, once for each instruction set. Each set is compiled from the same
/// templates (bidiagonalisation.hpp, tridiagonalisation.hpp, reflectors.hpp, bidiagonal_values.hpp,
/// twisted_vectors.hpp) with its own registers.
namespace spiked::estimators::kernels {

/// Columns start at multiples of this many bytes, so that every register load is aligned; what pads them is zero.
inline constexpr std::size_t alignment = 64;
/// Blocks whose singular values are found together, one a lane.
inline constexpr std::size_t value_lanes = 16;
/// Singular values whose vectors are found together.
inline constexpr std::size_t vector_lanes = 16;
/// Reflectors applied together.
inline constexpr std::size_t reflector_group = 4;
/// Columns that the reduction takes together: as many zero columns less one follow the block.
inline constexpr std::size_t reduction_strip = 8;
/// Vectors that reflectors are applied to together.
inline constexpr std::size_t applied_lanes = vector_lanes;

/// Where reflectors of a side of `length` lie: a group of them from the line of its first entry on, nothing between.
/// Entry i of reflector k is at column(k) + i.
template <class Real>
class Packed {
public:
    explicit Packed(std::size_t length) : padded_((length + line - 1) / line * line) {}
    [[nodiscard]] std::size_t column(std::size_t k) const {
        const std::size_t group = k / reflector_group;
        return start(group) + k % reflector_group * height(group) - left_out(group);
    }
    [[nodiscard]] std::size_t size(std::size_t count) const {
        return start((count + reflector_group - 1) / reflector_group);
    }

private:
    static constexpr std::size_t line = alignment / sizeof(Real);
    static constexpr std::size_t groups_a_line = line / reflector_group;
    [[nodiscard]] static std::size_t left_out(std::size_t group) { return group / groups_a_line * line; }
    [[nodiscard]] std::size_t height(std::size_t group) const { return padded_ - left_out(group); }
    [[nodiscard]] std::size_t start(std::size_t group) const {
        const std::size_t lines = group / groups_a_line;
        const std::size_t whole = lines * padded_ - line * ((lines * lines - lines) / 2);
        return reflector_group * (groups_a_line * whole + group % groups_a_line * height(group));
    }
    std::size_t padded_;
};

/// A = H_0 H_1 .. B (G_0 G_1 ..)^T with B upper bidiagonal, rows >= columns, H = I - scale u u^T, G = I - scale v v^T.
/// u_k begins at entry k, v_k at entry k + 1; before are zeros from the start of the group of reflectors on.
template <class Real>
struct Reduction {
    std::size_t rows, columns;
    Real* entries;  ///< of A; destroyed
    std::size_t stride;
    Real* left;   ///< u, packed
    Real* right;  ///< v, packed
    Real* left_scale;
    Real* right_scale;
    double* diagonal;
    double* off_diagonal;
    Real* row_work;     ///< 2 stride
    Real* column_work;  ///< zero at first; 2 (columns + reduction_strip), each a multiple of `alignment` bytes
};

/// A symmetric matrix = (G_0 G_1 ..) T (G_0 G_1 ..)^T with T tridiagonal, G as above.
struct SymmetricReduction {
    std::size_t size;
    double* entries;  ///< each column from its `alignment` bytes before or at the diagonal on; zero rows and columns
                      ///< follow up to a multiple of those; destroyed
    std::size_t stride;
    double* reflectors;  ///< packed
    double* scales;
    double* diagonal;
    double* off_diagonal;
    double* work;  ///< zero at first; 2 stride
};

/// `value_lanes` symmetric tridiagonal matrices side by side: entry i of matrix `lane` at i * value_lanes + lane.
struct TridiagonalBatch {
    std::size_t size;
    double tolerance;  ///< square of an off-diagonal entry that counts as zero, as a share of the product of its
                       ///< neighbours
    double* diagonal;  ///< destroyed
    double* off_diagonal_squared;  ///< destroyed; the last row is zero
    double* eigenvalues;           ///< out: matrix after matrix, `size` each, in no order
    bool converged[value_lanes];   ///< out
    bool present[value_lanes];     ///< in: false for matrices that are not there
};

/// The symmetric tridiagonal matrix with zero diagonal whose eigenvalues are plus and minus the singular values of a
/// bidiagonal matrix; entries of its eigenvectors alternate between right and left.
struct GolubKahan {
    std::size_t size;            ///< twice the size of the bidiagonal matrix
    const double* off_diagonal;  ///< size - 1 entries d_0, e_0, d_1, e_1, .., d_last
    double* work;                ///< 2 size vector_lanes
};

template <class Real>
struct Kernels {
    void (*bidiagonalise)(const Reduction<Real>& block);
    /// vectors <- H_0 H_1 .. H_(count-1) vectors for `applied_lanes` vectors side by side, the first `wanted` of which
    /// are needed: entry i of vector `lane` at i * applied_lanes + lane. Reflectors as in Reduction, u_k beginning at
    /// entry k or later.
    void (*apply_reflectors)(const Real* reflectors, const Real* scales, std::size_t count, std::size_t length,
                             Real* vectors, std::size_t wanted);
    /// to <- factor from, entry for entry; both may be the same. Returns the largest size of an entry of `from`, NaN
    /// where one is NaN or infinite.
    double (*scale)(const Real* from, std::size_t from_stride, std::size_t rows, std::size_t columns, Real factor,
                    Real* to, std::size_t to_stride);
    void (*tridiagonalise)(const SymmetricReduction& matrix);
    void (*eigenvalues)(TridiagonalBatch& batch);
    /// For each lane the number of singular values of a bidiagonal matrix below `points[lane]`. Squares of its entries.
    void (*count_below)(std::size_t size, const double* diagonal_squared, const double* off_diagonal_squared,
                        const double* points, double* counts);
    /// Eigenvectors of the first `wanted` of `vector_lanes` eigenvalues, with one entry equal to 1: entry i at i *
    /// vector_lanes + lane of `work`. Also the squares of the norms of their even and odd parts, and what eigenvalue
    /// times vector misses (the residual is a multiple of one unit vector).
    void (*twisted_vectors)(const GolubKahan& matrix, const double* eigenvalues, std::size_t wanted, double* even_norm,
                            double* odd_norm, double* miss);
    /// Vectors that the one before leaves, times a scale for each lane: right ones from the even entries, left ones
    /// from the odd ones, entry i at i * vector_lanes + lane. Entries below `least` are 0.
    void (*scale_vectors)(const GolubKahan& matrix, const double* right_scale, const double* left_scale, double least,
                          Real* right, Real* left);
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
