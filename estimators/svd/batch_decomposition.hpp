#pragma once
#include <armadillo>
#include <memory>
#include <span>

#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// What the inner loops are made of. `best` is the widest the processor has; AVX-512 and AVX2 need an fma instruction.
enum class Instructions { best, avx512, avx2, generic };

/// All singular values and leading singular vectors of batches of blocks of one shape, in `Real` = float or double.
///
/// A block is scaled by a power of two, reduced to bidiagonal form B by Householder reflectors in one fused pass a
/// column (bidiagonalisation.hpp); the singular values of 16 blocks are found together in double by root-free QL on
/// B B^T, and in double those too small for that by bisection (bidiagonal_values.hpp); vectors of B by twisted
/// factorisations of its Golub-Kahan matrix, those of close values made orthogonal, and multiplied by the reflectors
/// (twisted_vectors.hpp, reflectors.hpp). Double blocks whose long side is 1.5 times the short one or more come to
/// bidiagonal form by their Gram matrix (gram_reduction.hpp) unless values below 1e-3 s1, or vectors of values below
/// 0.05 s1, would suffer. Where more than a quarter of the vectors is wanted (and more than 32), or
/// values are so close or so small that these vectors fail their checks, LAPACK (bdsdc, or where
/// that gives up or loses orthogonality bdsqr) finds the vectors of B.
///
/// With s1 the largest value, p the short side and q the long one, for any spectrum, clusters and rank deficiency
/// included:
///
///              | double       | float
///   values     | 1e-12 p s1   | (1e-6 + 4e-9 q) s1; 1e-6 relative for the first 16 above s1 / 4, and for all
///              |              | of the first 16 beside a few spikes up to 100 times as strong as the noise
///   vectors    | 1e-12        | 5e-6: entries of V^T V - I, and |A v - s u|, |A^T u - s v| over s1
///
/// Tests find a tenth to a hundredth of these in most spectra; values of float blocks of equal entries and several
/// hundred rows have up to three times the error above. Values of a float block below 1e-7 s1 mean nothing.
///
/// Cost, one core, 128 x 128 and 16 vectors: bench/README.md.
///
/// What is found for a block is the same, bit for bit, in any batch and at any place in it. It depends on the
/// instructions. Objects are independent of each other; one is for one thread.
template <class Real>
class BatchDecomposition {
public:
    static constexpr std::size_t lanes = 16;  ///< preferred number of blocks a call

    /// Throws input_error when the processor lacks the instructions, or a side is zero.
    explicit BatchDecomposition(Shape shape, Instructions instructions = Instructions::best);
    ~BatchDecomposition();
    BatchDecomposition(BatchDecomposition&&) noexcept;
    BatchDecomposition& operator=(BatchDecomposition&&) noexcept;

    /// Reduces blocks, column-major, one after the other, and finds all their singular values. The first call that
    /// brings more blocks than any before allocates room for them: about 2 rows columns numbers each.
    /// Throws input_error with the block's place in the batch when it holds NaN or infinity.
    void decompose(std::span<const Real> blocks);
    /// Of the last call.
    [[nodiscard]] std::size_t count() const;
    /// min(rows, columns) of them, descending.
    [[nodiscard]] std::span<const double> singular_values(std::size_t block) const;
    /// Leading vectors of a block of the last call: left rows x wanted, right columns x wanted, with
    /// left_i^T block right_i = + value_i. Either may be null. Throws input_error when LAPACK was needed and failed.
    void leading_vectors(std::size_t block, std::size_t wanted, arma::Mat<Real>* left, arma::Mat<Real>* right);
    /// "avx512", "avx2" or "generic".
    [[nodiscard]] const char* instructions() const;

private:
    class Work;
    std::unique_ptr<Work> work_;
};

extern template class BatchDecomposition<float>;
extern template class BatchDecomposition<double>;

}  // namespace spiked::estimators
