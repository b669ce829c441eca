#pragma once
#include <cstddef>
#include <vector>

#include "core/runtime/parallel.hpp"
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
/// therefore depend. Large parts of the work are shared by the threads of a team: columns and rows of products, panels
/// beside products, bundles of sweeps of the chase. How they are cut depends on the sizes alone, so that results are
/// the same, bit for bit, for any number of threads.
template <class Real>
class TwoStageReduction {
public:
    /// Whether this method is faster than one stage for blocks with this short side.
    [[nodiscard]] static bool serves(std::size_t short_side);
    /// The fastest width of the band for this short side.
    [[nodiscard]] static std::size_t best_width(std::size_t short_side);

    /// Whether the reflectors of the second stage should be kept: where they are large, only vectors pay for them.
    [[nodiscard]] static bool best_kept(std::size_t short_side);

    /// `width` is a power of two and at least 64 bytes of numbers.
    TwoStageReduction(const kernels::Kernels<Real>& kernels, std::size_t long_side, std::size_t short_side,
                      std::size_t width, bool keeps_chase);

    /// A block and what is left of it by the reduction. `entries` starts at a cache line, `stride` is a multiple of
    /// one, and the rows up to it are zero. They become the reflectors of the first stage, those of columns from the
    /// diagonal on and those of rows, transposed, to the right of it. `rest` starts at a cache line; it receives their
    /// scales and the reflectors of the second stage, which take up 1.3 times the memory of a square block, or else the
    /// band.
    struct Reduced {
        Real* entries;
        std::size_t stride;
        Real* rest;
    };
    [[nodiscard]] std::size_t rest_size() const { return rest_size_; }
    /// Reduces a block, of which the largest entry is neither tiny nor huge.
    void reduce(const Reduced& block, double* diagonal, double* off_diagonal, ThreadTeam& team);

    /// To be called before vectors of a block are transformed. Reflectors of the second stage that were not kept are
    /// made again, in up to a tenth of the time of the reduction, and held until forget_vectors().
    void prepare_vectors(const Reduced& block, ThreadTeam& team);
    void forget_vectors() { tiles_ = {}; }

    enum class Side { left, right };
    /// Transforms vectors of B, of the short side's length, into those of the block for which the reflectors were made;
    /// a left vector is followed by zeros up to the long side's length. Layout of vectors and `wanted` as in
    /// kernels::Kernels::apply_reflectors. Several threads may do this at once.
    void transform(Side side, const Reduced& block, Real* vectors, std::size_t wanted) const;

    /// The same in two parts, which is faster for many vectors and, in float, less accurate for blocks of equal
    /// entries: first vectors side by side, then all of them as columns.
    static constexpr std::size_t many = sizeof(Real) == 8 ? 64 : ~std::size_t{0};
    void transform_to_band(Side side, const Reduced& block, Real* vectors, std::size_t wanted) const;
    void transform_from_band(Side side, const Reduced& block, Real* columns, std::size_t stride, std::size_t wanted,
                             ThreadTeam& team) const;

private:
    /// A panel of one side: its columns begin at row `first` of the vectors of that side.
    struct Place {
        std::size_t first, rows, columns, scales;
    };

    [[nodiscard]] std::size_t tiles_size() const { return band_.tiles() * band_.tile(); }
    [[nodiscard]] kernels::Panel<Real> columns_of(const Place& place, const Reduced& block) const;
    [[nodiscard]] kernels::Panel<Real> rows_of(const Place& place, const Reduced& block, Real* room) const;
    [[nodiscard]] kernels::Panel<Real> panel(Side side, const Place& place, const Reduced& block, Real* room) const;
    [[nodiscard]] const std::vector<Place>& places(Side side) const { return side == Side::left ? left_ : right_; }
    void factor_columns(const Place& place, const Reduced& block);
    void factor_rows(const Place& left, const Place& right, const Reduced& block, ThreadTeam& team);
    void multiply_by_rows(const Place& left, const Place& right, const Reduced& block, ThreadTeam& team);
    void weigh_rows(const Place& right, const Reduced& block);
    void update(const Place& left, const Place& right, const Place& next, const Reduced& block, ThreadTeam& team);
    void make_triangle(const kernels::Panel<Real>& panel, Real* overlaps, Real* triangle) const;
    template <class Visit>
    void visit_band(Real* stored, Visit visit);
    void chase(const kernels::BandReduction<Real>& band, ThreadTeam& team);

    const kernels::Kernels<Real>& kernels_;
    std::size_t long_side_, short_side_;
    std::size_t tall_stride_, wide_stride_;
    kernels::BandShape band_;
    bool keeps_chase_;
    std::vector<Place> left_, right_;
    std::size_t chase_at_ = 0, rest_size_ = 0;  ///< position of the second stage in what is left of a block; its size
    AlignedArray<Real> entries_;                ///< of the band
    AlignedArray<Real> tall_;                   ///< V and X, side by side
    AlignedArray<Real> wide_;                   ///< W and U S^T, side by side
    AlignedArray<Real> rows_;                   ///< C^T, later U
    AlignedArray<Real> product_;                ///< V^T C
    AlignedArray<Real> transposed_;             ///< V^T
    AlignedArray<Real> squares_;                ///< matrices of `width` columns and rows
    AlignedArray<Real> work_;
    AlignedArray<Real> tiles_;  ///< reflectors of the chase, left and right
};

extern template class TwoStageReduction<float>;
extern template class TwoStageReduction<double>;

}  // namespace spiked::estimators
