#pragma once
#include <cstddef>
#include <vector>

#include "estimators/svd/aligned_array.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

namespace spiked::estimators {

/// Reduces a block A of long_side x short_side to bidiagonal form in two stages, A = (reflectors) B (reflectors)^T. The
/// first one makes a band matrix of panels of `width` columns and rows (Grosser and Lang 1999): nearly all of its
/// operations are matrix products, of which a quarter each are V^T A and A U, and half are a product of inner dimension
/// 2 width. The second one chases the bulges of the band (two_stage/bulge_chasing.hpp), about 8 width short_side^2
/// operations. The one-stage reduction reads and writes the block once per column instead, and is limited by memory
/// beyond the caches.
///
/// Errors are those of bidiagonalisation.hpp. The products are computed by the BLAS, on whose kernels the last bits
/// therefore depend.
template <class Real>
class TwoStageReduction {
public:
    /// Whether this method is faster than one stage for blocks with this short side.
    [[nodiscard]] static bool serves(std::size_t short_side);
    /// The fastest width of the band for this short side.
    [[nodiscard]] static std::size_t best_width(std::size_t short_side);

    /// `width` is a power of two and at least 64 bytes of numbers.
    TwoStageReduction(const kernels::Kernels<Real>& kernels, std::size_t long_side, std::size_t short_side,
                      std::size_t width);

    /// Size of the reflectors of a block: about twice its entries.
    [[nodiscard]] std::size_t stored() const { return stored_; }
    /// Reduces a block, of which the largest entry is neither tiny nor huge. `entries` starts at a cache line, `stride`
    /// is a multiple of one, and the rows up to it are zero; they are overwritten. `reflectors` starts at a cache line.
    void reduce(Real* entries, std::size_t stride, Real* reflectors, double* diagonal, double* off_diagonal);

    enum class Side { left, right };
    /// Transforms vectors of B, of the short side's length, into those of the block; a left vector is followed by zeros
    /// up to the long side's length. Layout of vectors and `wanted` as in kernels::Kernels::apply_reflectors.
    void transform(Side side, Real* reflectors, Real* vectors, std::size_t wanted) const;

    /// The same in two parts, which is faster for many vectors and, in float, less accurate for blocks of equal
    /// entries: first vectors side by side, then all of them as columns.
    static constexpr std::size_t many = sizeof(Real) == 8 ? 64 : ~std::size_t{0};
    void transform_to_band(Side side, Real* reflectors, Real* vectors, std::size_t wanted) const;
    void transform_from_band(Side side, Real* reflectors, Real* columns, std::size_t stride, std::size_t wanted);

private:
    /// A panel of one side: its columns begin at row `first` of the vectors of that side.
    struct Place {
        std::size_t first, rows, columns, stride, entries, scales;
    };

    [[nodiscard]] kernels::Panel<Real> panel(const Place& place, Real* reflectors) const;
    [[nodiscard]] const std::vector<Place>& places(Side side) const { return side == Side::left ? left_ : right_; }
    void factor_columns(const Place& place, const Real* entries, std::size_t stride, Real* reflectors);
    void factor_rows(const Place& left, const Place& right, const Real* entries, std::size_t stride, Real* reflectors);
    void update(const Place& left, const Place& right, Real* entries, std::size_t stride, Real* reflectors);
    void make_triangle(const kernels::Panel<Real>& panel, Real* triangle);

    const kernels::Kernels<Real>& kernels_;
    std::size_t long_side_, short_side_;
    kernels::BandShape band_;
    std::vector<Place> left_, right_;
    /// Positions of the chase's reflectors among those of a block, and the size of all.
    std::size_t left_tiles_ = 0, right_tiles_ = 0, stored_ = 0;
    AlignedArray<Real> entries_;     ///< of the band
    AlignedArray<Real> tall_;        ///< V and X, side by side
    AlignedArray<Real> wide_;        ///< W and U, side by side
    AlignedArray<Real> product_;     ///< V^T C, later U S
    AlignedArray<Real> transposed_;  ///< V^T
    AlignedArray<Real> squares_;     ///< four matrices of `width` columns and rows: R, V^T V, T and a product
    AlignedArray<Real> work_;
};

extern template class TwoStageReduction<float>;
extern template class TwoStageReduction<double>;

}  // namespace spiked::estimators
