#pragma once
#include <cstddef>

/// The inner loops of batch_decomposition.hpp as a table of functions for each instruction set. All tables are compiled
/// from the same templates (bidiagonalisation.hpp, tridiagonalisation.hpp, reflectors.hpp, bidiagonal_values.hpp,
/// twisted_vectors.hpp; two_stage/panel_factorisation.hpp, two_stage/panel_products.hpp and
/// two_stage/bulge_chasing.hpp), each with its own registers.
namespace spiked::estimators::kernels {

/// Columns start at multiples of this number of bytes, so that every register load is aligned; the padding is zero.
inline constexpr std::size_t alignment = 64;
/// Number of blocks whose singular values are computed at once, one per lane.
inline constexpr std::size_t value_lanes = 16;
/// Number of singular values whose vectors are computed at once.
inline constexpr std::size_t vector_lanes = 16;
/// Number of reflectors that are applied at once.
inline constexpr std::size_t reflector_group = 4;
/// Number of columns that the reduction processes at once; as many zero columns less one must follow the block.
inline constexpr std::size_t reduction_strip = 8;
/// Number of vectors to which reflectors are applied at once.
inline constexpr std::size_t applied_lanes = vector_lanes;

/// Distance between stored columns of this length. It is not a multiple of 1 KiB: such columns would share few cache
/// sets, and the processor would take stores to one for loads of the next.
template <class Real>
[[nodiscard]] std::size_t padded(std::size_t length) {
    constexpr std::size_t line = alignment / sizeof(Real);
    const std::size_t stride = (length + line - 1) / line * line;
    return stride * sizeof(Real) % 1024 == 0 ? stride + line : stride;
}

/// Positions of packed reflectors of vectors of `length` entries. The reflectors of a group are stored without gaps,
/// each from the cache line of the first entry of the group on. Entry i of reflector k is at column(k) + i.
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
/// u_k begins at entry k and v_k at entry k + 1; the entries before, back to the start of the group of reflectors, are
/// zero.
template <class Real>
struct Reduction {
    std::size_t rows, columns;
    Real* entries;  ///< of A; overwritten
    std::size_t stride;
    Real* left;   ///< u, packed
    Real* right;  ///< v, packed
    Real* left_scale;
    Real* right_scale;
    double* diagonal;
    double* off_diagonal;
    Real* row_work;     ///< 2 stride numbers
    Real* column_work;  ///< zero at first; twice columns + reduction_strip numbers, each rounded up to a multiple of
                        ///< `alignment` bytes
};

/// A symmetric matrix = (G_0 G_1 ..) T (G_0 G_1 ..)^T with T tridiagonal, G as above.
struct SymmetricReduction {
    std::size_t size;
    double* entries;  ///< each column is stored from the last multiple of `alignment` bytes at or before its diagonal
                      ///< on; zero rows and columns follow up to such a multiple; overwritten
    std::size_t stride;
    double* reflectors;  ///< packed
    double* scales;
    double* diagonal;
    double* off_diagonal;
    double* work;  ///< zero at first; 2 stride numbers
};

/// A panel of columns = H_0 H_1 .. R with R upper triangular (trapezoidal where rows < columns), H as above.
template <class Real>
struct Panel {
    std::size_t rows, columns;
    Real* entries;  ///< becomes u_0, u_1, .. with zeros before their heads; zero rows follow up to a multiple of
                    ///< `alignment` bytes
    std::size_t stride;
    Real* scales;    ///< min(rows, columns)
    Real* triangle;  ///< R, columns x columns, column-major; entries below the diagonal are left alone
    Real* work;      ///< `columns` numbers
};

/// A product of a block with a panel of `width` columns, a multiple of `alignment` bytes. Blocks and results start at
/// cache lines in every column, and zero rows follow the block up to such a line.
template <class Real>
struct PanelProduct {
    std::size_t rows, columns;  ///< of the block
    std::size_t width;
    const Real* block;
    std::size_t block_stride;
    const Real* panel;
    std::size_t panel_stride;
    Real* result;
    std::size_t result_stride;
};

/// Positions in an upper triangular band matrix of `size` columns with `width` entries beside the diagonal, a power of
/// two and at least `alignment` bytes. Columns have room for what the reduction to bidiagonal form fills in for a time.
struct BandShape {
    std::size_t size, width;

    /// Entry (row, column) is at column_start(column) + row.
    [[nodiscard]] std::size_t column_start(std::size_t column) const {
        return column * stride() + 2 * width - (column & ~(width - 1));
    }
    [[nodiscard]] std::size_t stride() const { return 4 * width + alignment / sizeof(float); }
    [[nodiscard]] std::size_t entries() const { return (size + 3 * width) * stride(); }

    /// Reflectors of a side: sweep i leaves one of `width` entries from entry i + 1 + s width on, for every s with
    /// which this is inside the matrix. The reflectors with equal s of `reflector_group` sweeps are stored as one tile,
    /// each by a place lower than the one before; behind them are their scales and the matrix T of their product.
    [[nodiscard]] std::size_t tile_stride() const { return width + reflector_group; }
    [[nodiscard]] std::size_t tile() const { return reflector_group * (tile_stride() + 1 + reflector_group); }
    [[nodiscard]] std::size_t steps(std::size_t sweep) const { return (size - 1 - sweep + width - 1) / width; }
    [[nodiscard]] std::size_t tiles() const { return tiles_before(size - 1); }
    /// The number of tiles of the sweeps before this one, which begins a group or is the end of all.
    [[nodiscard]] std::size_t tiles_before(std::size_t end) const {
        std::size_t count = 0;
        for (std::size_t sweep = 0; sweep < end; sweep += reflector_group) count += steps(sweep);
        return count;
    }

    /// Sweeps are made in bundles. In tick t of a bundle, its sweep j does step t - lag j: sweep i + 1 may do a step
    /// once sweep i has done the two after it, and the bundle's part of the matrix stays in the cache.
    static constexpr std::size_t bundle = 2 * reflector_group;
    static constexpr std::size_t lag = 2;
    /// A tick of a bundle may run beside all ticks of the one before from this number later on: they share no row, with
    /// the other rows of their registers.
    static constexpr std::size_t apart = lag * (bundle - 1) + 4;
    [[nodiscard]] std::size_t bundles() const { return (size - 1 + bundle - 1) / bundle; }
    [[nodiscard]] std::size_t bundle_end(std::size_t at) const {
        return size - 1 < (at + 1) * bundle ? size - 1 : (at + 1) * bundle;
    }
    [[nodiscard]] std::size_t ticks(std::size_t at) const {
        const std::size_t last = bundle_end(at) - 1;
        return lag * (last - at * bundle) + steps(last);
    }
};

/// A band matrix = (L_0 L_1 ..) B (R_0 R_1 ..)^T with B upper bidiagonal.
template <class Real>
struct BandReduction {
    BandShape shape;
    Real* entries;  ///< overwritten; zero outside the band
    Real* left;     ///< tiles of reflectors, of which those of a bundle are written; null: they are not kept
    Real* right;
    double* diagonal;  ///< all but the last entry, which the last bundle leaves in `entries`
    double* off_diagonal;
    Real* work;  ///< zero at first; 9 width numbers
};

/// `value_lanes` symmetric tridiagonal matrices side by side: entry i of matrix `lane` at i * value_lanes + lane.
struct TridiagonalBatch {
    std::size_t size;
    double tolerance;  ///< square of an off-diagonal entry that counts as zero, as a fraction of the product of its
                       ///< neighbours
    double* diagonal;  ///< overwritten
    double* off_diagonal_squared;  ///< overwritten; the last row is zero
    double* eigenvalues;           ///< output: `size` for each matrix in turn, unordered
    bool converged[value_lanes];   ///< output
    bool present[value_lanes];     ///< input: false for lanes without a matrix
};

/// The symmetric tridiagonal matrix with zero diagonal whose eigenvalues are plus and minus the singular values of a
/// bidiagonal matrix; entries of its eigenvectors alternate between right and left.
struct GolubKahan {
    std::size_t size;            ///< twice the size of the bidiagonal matrix
    const double* off_diagonal;  ///< size - 1 entries d_0, e_0, d_1, e_1, .., d_last
    double* work;                ///< 2 size vector_lanes numbers
};

template <class Real>
struct Kernels {
    void (*bidiagonalise)(const Reduction<Real>& block);
    /// vectors <- H_0 H_1 .. H_(count-1) vectors for `applied_lanes` vectors side by side, of which the first `wanted`
    /// are needed: entry i of vector `lane` is at i * applied_lanes + lane. Reflectors as in Reduction, where u_k may
    /// begin later than at entry k.
    void (*apply_reflectors)(const Real* reflectors, const Real* scales, std::size_t count, std::size_t length,
                             Real* vectors, std::size_t wanted);
    void (*factor_panel)(const Panel<Real>& panel);
    /// As apply_reflectors, for the reflectors of a panel.
    void (*apply_panel)(const Panel<Real>& panel, Real* vectors, std::size_t wanted);
    /// result <- V^T block, width x columns, with V^T stored by columns: width x rows.
    void (*project_on_panel)(const PanelProduct<Real>& product);
    /// result <- block U, rows x width, with U columns x width.
    void (*multiply_by_panel)(const PanelProduct<Real>& product);
    /// Makes a tick of a bundle of sweeps.
    void (*chase_bulges)(const BandReduction<Real>& band, std::size_t bundle, std::size_t tick);
    /// Completes tiles: computes the matrices T of their products.
    void (*complete_tiles)(const BandShape& shape, Real* tiles, std::size_t count);
    /// vectors <- (L_0 L_1 ..) vectors, as apply_reflectors, or the same with R.
    void (*apply_chase)(const BandShape& shape, const Real* tiles, Real* vectors, std::size_t wanted);
    /// to <- factor from, entry by entry; both may be the same matrix. Returns the largest magnitude of an entry of
    /// `from`, or NaN when an entry is NaN or infinite.
    double (*scale)(const Real* from, std::size_t from_stride, std::size_t rows, std::size_t columns, Real factor,
                    Real* to, std::size_t to_stride);
    void (*tridiagonalise)(const SymmetricReduction& matrix);
    void (*eigenvalues)(TridiagonalBatch& batch);
    /// Computes for each lane the number of singular values of a bidiagonal matrix below `points[lane]`. The matrix is
    /// given by the squares of its entries.
    void (*count_below)(std::size_t size, const double* diagonal_squared, const double* off_diagonal_squared,
                        const double* points, double* counts);
    /// Computes eigenvectors of the first `wanted` of `vector_lanes` eigenvalues, each with one entry equal to 1: entry
    /// i is at i * vector_lanes + lane of `work`. Also returns the squared norms of their even and odd parts, and the
    /// remainders of the factorisations: the residual of an eigenvector is its remainder times a unit vector.
    void (*twisted_vectors)(const GolubKahan& matrix, const double* eigenvalues, std::size_t wanted, double* even_norm,
                            double* odd_norm, double* remainders);
    /// Multiplies the vectors that twisted_vectors leaves in `work` by a scale for each lane: right vectors are their
    /// even entries, left vectors their odd ones, with entry i at i * vector_lanes + lane. Entries below `least` become
    /// 0.
    void (*scale_vectors)(const GolubKahan& matrix, const double* right_scale, const double* left_scale, double least,
                          Real* right, Real* left);
    /// Makes the last of `count` columns of norm 1 orthogonal to the others and normalises it; returns its squared norm
    /// before the normalisation.
    double (*orthogonalise)(double* columns, std::size_t stride, std::size_t length, std::size_t count);
};

/// The tables of kernels; null where the processor or the compiler lacks the instructions.
template <class Real>
[[nodiscard]] const Kernels<Real>* generic();
template <class Real>
[[nodiscard]] const Kernels<Real>* avx2();
template <class Real>
[[nodiscard]] const Kernels<Real>* avx512();

/// A table with the name of its instructions: avx512, avx2 or generic.
template <class Real>
struct Path {
    const char* name;
    const Kernels<Real>* kernels;
};
/// The path of the widest instructions that the processor has, or of those with a name; null kernels where it lacks
/// them.
template <class Real>
[[nodiscard]] Path<Real> best_path();
template <class Real>
[[nodiscard]] Path<Real> path_named(const char* name);

}  // namespace spiked::estimators::kernels
