#pragma once
#include <cstddef>
#include <span>

#include "estimators/svd/aligned_array.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

namespace spiked::estimators {

/// An upper bidiagonal matrix whose largest entry is neither tiny nor huge.
struct Bidiagonal {
    std::span<const double> diagonal;
    std::span<const double> off_diagonal;  ///< one entry less

    [[nodiscard]] std::size_t size() const { return diagonal.size(); }
};

/// Singular values and vectors of bidiagonal matrices of one size, computed by the kernels of an instruction set and,
/// where their vectors fail the checks, by LAPACK. Both precisions use the same kernels in double.
template <class Real>
class BidiagonalSvd {
public:
    BidiagonalSvd(const kernels::Kernels<Real>& kernels, std::size_t size);

    /// Computes all singular values, in descending order, of up to `kernels::value_lanes` matrices; `values` has room
    /// for `size` numbers per matrix. Errors are a few units in the last place of the largest value; without
    /// `exact_small`, small values have errors of up to 1e-8 of it.
    void values(std::span<const Bidiagonal> matrices, bool exact_small, double* values);

    /// Computes the vectors of the `wanted` largest values.
    void vectors(const Bidiagonal& matrix, std::span<const double> values, std::size_t wanted);
    /// Right or left vectors of the last call of vectors(): `kernels::applied_lanes` of them from `first` on, which
    /// must be a multiple of this number. Entry i of vector `lane` is stored at i * applied_lanes + lane of `to`.
    /// Vectors beyond the wanted ones are meaningless.
    void right(std::size_t first, Real* to) const { copy(right_, first, to); }
    void left(std::size_t first, Real* to) const { copy(left_, first, to); }

private:
    void bisect(const Bidiagonal& matrix, double upper, std::span<double> smallest);
    [[nodiscard]] bool twisted(const Bidiagonal& matrix, std::span<const double> values, std::size_t wanted);
    [[nodiscard]] bool twisted_group(std::span<const double> values, double largest, std::size_t first);
    [[nodiscard]] bool make_orthogonal(std::span<const double> values, std::size_t wanted);
    void copy(const AlignedArray<Real>& lanes, std::size_t first, Real* to) const;
    void make_room(std::size_t wanted);
    void lapack(const Bidiagonal& matrix, std::size_t wanted);

    const kernels::Kernels<Real>& kernels_;
    std::size_t size_;
    std::size_t stride_;
    AlignedArray<double> diagonals_, off_diagonals_, eigenvalues_;
    AlignedArray<double> links_;  ///< off-diagonal of the Golub-Kahan matrix
    AlignedArray<double> vector_work_;
    AlignedArray<Real> right_, left_;  ///< groups of `vector_lanes` vectors side by side, as computed
    AlignedArray<double> columns_;     ///< copies of vectors of close values, to be made orthogonal
};

extern template class BidiagonalSvd<float>;
extern template class BidiagonalSvd<double>;

}  // namespace spiked::estimators
