#pragma once
#include <cstddef>
#include <span>

#include "estimators/svd/aligned_array.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

namespace spiked::estimators {

/// An upper bidiagonal matrix whose largest entry is neither tiny nor huge.
struct Bidiagonal {
    std::span<const double> diagonal;
    std::span<const double> off_diagonal;  ///< one less

    [[nodiscard]] std::size_t size() const { return diagonal.size(); }
};

/// Singular values and vectors of bidiagonal matrices of one size, by the kernels of an instruction set and, where
/// those vectors fail their checks, by LAPACK. The kernels in double are the same for both precisions.
template <class Real>
class BidiagonalSvd {
public:
    BidiagonalSvd(const kernels::Kernels<Real>& kernels, std::size_t size);

    /// All singular values, descending, of up to `kernels::value_lanes` matrices; `values` has `size` for each. Within
    /// a few units of the last place of the largest one; where not `exact_small`, small ones only within 1e-8 of it.
    void values(std::span<const Bidiagonal> matrices, bool exact_small, double* values);

    /// Vectors of the largest values.
    void vectors(const Bidiagonal& matrix, std::span<const double> values, std::size_t wanted);
    /// Of the last call: `kernels::applied_lanes` right or left vectors from `first`, a multiple of that, on; entry i
    /// of vector `lane` at i * applied_lanes + lane of `to`. Those beyond the wanted ones mean nothing.
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
    AlignedArray<Real> right_, left_;  ///< `vector_lanes` side by side, as they are found
    AlignedArray<double> columns_;     ///< those with others close by, to be made orthogonal
};

extern template class BidiagonalSvd<float>;
extern template class BidiagonalSvd<double>;

}  // namespace spiked::estimators
