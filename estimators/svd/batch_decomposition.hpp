#pragma once
#include <armadillo>
#include <memory>
#include <span>

#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// Instruction set of the inner loops. `best` is the widest one that the processor has; avx512 and avx2 also require
/// fma.
enum class Instructions { best, avx512, avx2, generic };

/// All singular values and leading singular vectors of batches of blocks of one shape, in `Real` = float or double.
///
/// A block is scaled by a power of two and reduced to bidiagonal form B by Householder reflectors: in one fused pass
/// per column (bidiagonalisation.hpp), or, where its short side has at least 700 (float: 1000) entries, in two stages
/// (two_stage/two_stage_reduction.hpp). The singular values of 16 blocks are computed at once, in double, by root-free
/// QL on B B^T; values of double blocks that are too small for this method are computed by bisection
/// (bidiagonal_values.hpp). Vectors of B are computed by twisted factorisations of its Golub-Kahan matrix, made
/// orthogonal where their values are close, and multiplied by the reflectors (twisted_vectors.hpp, reflectors.hpp).
/// Double blocks whose long side is at least 1.5 times the short one are reduced to bidiagonal form through their Gram
/// matrix (gram_reduction.hpp), unless values below 1e-3 s1, or vectors of values below 0.05 s1, would lose accuracy.
/// LAPACK (bdsdc or, where that fails or loses orthogonality, bdsqr) computes the vectors of B where more than a
/// quarter of them (and more than 32) are wanted, or where values are so close or so small that the vectors of the
/// twisted factorisations fail their checks.
///
/// Errors, with s1 the largest value, p the short side and q the long one, for any spectrum, clusters and rank
/// deficiency included:
///
///              | double       | float
///   values     | 1e-12 p s1   | (1e-6 + 4e-9 q) s1; 1e-6 relative for the first 16 above s1 / 4, and for all
///              |              | of the first 16 beside a few spikes up to 100 times as strong as the noise
///   vectors    | 1e-12        | 5e-6: entries of V^T V - I, and |A v - s u|, |A^T u - s v| over s1
///
/// In tests the errors for most spectra are a tenth to a hundredth of these bounds; values of float blocks of equal
/// entries and several hundred rows have up to three times the error above. Values of a float block below 1e-7 s1 are
/// meaningless.
///
/// The cost on one core, for 128 x 128 and 16 vectors and for larger blocks, stands in bench/README.md.
///
/// Work ends within a tenth of a second at a stop point (core/runtime/stop_point.hpp) at sides up to 4000, but not
/// while the BLAS makes a Gram matrix, nor while LAPACK computes vectors. The object may then be used again.
///
/// The results for a block are the same, bit for bit, in any batch, at any position in it and in any thread, but depend
/// on the instruction set and, where products or LAPACK take part (two stages, Gram matrices), on the BLAS. Objects are
/// independent of each other; one object may be used by one thread only.
template <class Real>
class BatchDecomposition {
public:
    static constexpr std::size_t lanes = 16;  ///< preferred number of blocks per call

    /// Throws input_error when the processor lacks the instructions, or a side is zero. Blocks that are reduced in two
    /// stages, one after the other, keep `threads` threads busy (0: one for each processor); results do not depend on
    /// their number.
    explicit BatchDecomposition(Shape shape, Instructions instructions = Instructions::best, std::size_t threads = 1);
    ~BatchDecomposition();
    BatchDecomposition(BatchDecomposition&&) noexcept;
    BatchDecomposition& operator=(BatchDecomposition&&) noexcept;

    /// Reduces blocks, stored column-major one after the other, and computes all their singular values. A call with
    /// more blocks than any before allocates memory for them: about 2 rows columns numbers per block besides a copy of
    /// one block; with two stages, which need no copy, 2.3 for a square block, and from a side of 1400 on 1.1, with 1.3
    /// more for one block while leading_vectors works. Throws input_error that names the index of the block in the
    /// batch when it holds NaN or infinity.
    void decompose(std::span<const Real> blocks);
    /// Number of blocks in the last call.
    [[nodiscard]] std::size_t count() const;
    /// The min(rows, columns) singular values of a block of the last call, in descending order.
    [[nodiscard]] std::span<const double> singular_values(std::size_t block) const;
    /// Leading vectors of a block of the last call: left rows x wanted, right columns x wanted, with left_i^T block
    /// right_i = + value_i. Either pointer may be null. Throws input_error when LAPACK was needed and failed.
    void leading_vectors(std::size_t block, std::size_t wanted, arma::Mat<Real>* left, arma::Mat<Real>* right);
    /// The instruction set in use: "avx512", "avx2" or "generic".
    [[nodiscard]] const char* instructions() const;

private:
    class Work;
    std::unique_ptr<Work> work_;
};

extern template class BatchDecomposition<float>;
extern template class BatchDecomposition<double>;

}  // namespace spiked::estimators
