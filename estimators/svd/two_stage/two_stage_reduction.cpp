#include "estimators/svd/two_stage/two_stage_reduction.hpp"

#include <algorithm>

#include "core/runtime/parts.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/transposition.hpp"

// Fortran passes the length of a character argument after all others.
extern "C" void sgemm_(const char* first_transposed, const char* second_transposed, const int* rows, const int* columns,
                       const int* inner, const float* factor, const float* first, const int* first_stride,
                       const float* second, const int* second_stride, const float* kept, float* product,
                       const int* product_stride, std::size_t, std::size_t);
extern "C" void dgemm_(const char* first_transposed, const char* second_transposed, const int* rows, const int* columns,
                       const int* inner, const double* factor, const double* first, const int* first_stride,
                       const double* second, const int* second_stride, const double* kept, double* product,
                       const int* product_stride, std::size_t, std::size_t);

namespace spiked::estimators {
namespace {

template <class Real>
struct Factor {
    const Real* entries;
    std::size_t stride;
    bool transposed = false;
};

/// product <- kept product + sign first second
template <class Real>
void multiply(std::size_t rows, std::size_t columns, std::size_t inner, Real sign, const Factor<Real>& first,
              const Factor<Real>& second, Real kept, Real* product, std::size_t stride) {
    const int sizes[] = {static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(inner)};
    const int strides[] = {static_cast<int>(first.stride), static_cast<int>(second.stride), static_cast<int>(stride)};
    const auto gemm = [] {
        if constexpr (sizeof(Real) == 8)
            return dgemm_;
        else
            return sgemm_;
    }();
    gemm(first.transposed ? "T" : "N", second.transposed ? "T" : "N", &sizes[0], &sizes[1], &sizes[2], &sign,
         first.entries, &strides[0], second.entries, &strides[1], &kept, product, &strides[2], 1, 1);
}

/// Work on `size` rows or columns is cut into parts of this many, whatever the number of threads.
std::size_t part_of(std::size_t size) {
    constexpr std::size_t step = 48;  // a multiple of what the kernels for panels do at once
    return (std::max<std::size_t>(2 * step, size / 12) + step - 1) / step * step;
}

}  // namespace

template <class Real>
bool TwoStageReduction<Real>::serves(std::size_t short_side) {
    return short_side >= (sizeof(Real) == 8 ? 700 : 1000);
}

template <class Real>
std::size_t TwoStageReduction<Real>::best_width(std::size_t short_side) {
    return sizeof(Real) == 8 && short_side < 1000 ? 16 : 32;
}

template <class Real>
bool TwoStageReduction<Real>::best_kept(std::size_t short_side) {
    return short_side < 1400;
}

template <class Real>
TwoStageReduction<Real>::TwoStageReduction(const kernels::Kernels<Real>& kernels, std::size_t long_side,
                                           std::size_t short_side, std::size_t width, bool keeps_chase)
    : kernels_(kernels),
      long_side_(long_side),
      short_side_(short_side),
      tall_stride_(kernels::padded<Real>(long_side)),
      wide_stride_(kernels::padded<Real>(short_side)),
      band_{short_side, width},
      keeps_chase_(keeps_chase),
      entries_(band_.entries()),
      tall_(2 * width * tall_stride_),
      wide_(2 * width * wide_stride_),
      rows_(width * wide_stride_),
      product_(width * wide_stride_),
      transposed_(width * long_side),
      squares_(6 * width * width),
      work_(width) {
    const auto add = [&](std::vector<Place>& to, std::size_t first, std::size_t rows, std::size_t columns) {
        to.push_back({first, rows, columns, rest_size_});
        rest_size_ += width;
    };
    for (std::size_t start = 0; start < short_side; start += width) {
        add(left_, start, long_side - start, std::min(width, short_side - start));
        if (start + width < short_side) add(right_, start + width, short_side - start - width, width);
    }
    chase_at_ = rest_size_;
    rest_size_ = kernels::padded<Real>(chase_at_ + (keeps_chase_ ? 2 * tiles_size() : short_side * (width + 1)));
}

/// The reflectors of a panel of columns, where they are.
template <class Real>
kernels::Panel<Real> TwoStageReduction<Real>::columns_of(const Place& place, const Reduced& block) const {
    return {place.rows,
            place.columns,
            block.entries + place.first * (block.stride + 1),
            block.stride,
            block.rest + place.scales,
            nullptr,
            nullptr};
}

/// The reflectors of a panel of rows in `room`, to which they are transposed.
template <class Real>
kernels::Panel<Real> TwoStageReduction<Real>::rows_of(const Place& place, const Reduced& block, Real* room) const {
    constexpr std::size_t line = kernels::alignment / sizeof(Real);
    const std::size_t width = band_.width;
    copy_transposed(block.entries + place.first * block.stride + place.first - width, block.stride, width, place.rows,
                    room, wide_stride_);
    for (std::size_t j = 0; j < width; ++j)
        std::fill(room + j * wide_stride_ + place.rows, room + j * wide_stride_ + (place.rows + line - 1) / line * line,
                  Real(0));
    return {place.rows, width, room, wide_stride_, block.rest + place.scales, nullptr, nullptr};
}

template <class Real>
kernels::Panel<Real> TwoStageReduction<Real>::panel(Side side, const Place& place, const Reduced& block,
                                                    Real* room) const {
    return side == Side::left ? columns_of(place, block) : rows_of(place, block, room);
}

/// Visits the entries of each column of the band, where they are stored and in `entries_`.
template <class Real>
template <class Visit>
void TwoStageReduction<Real>::visit_band(Real* stored, Visit visit) {
    for (std::size_t column = 0; column < short_side_; ++column, stored += band_.width + 1) {
        const std::size_t first = column - std::min(column, band_.width);
        visit(stored, entries_.data() + band_.column_start(column) + first, column - first + 1);
    }
}

template <class Real>
void TwoStageReduction<Real>::reduce(const Reduced& block, double* diagonal, double* off_diagonal, ThreadTeam& team) {
    std::fill_n(entries_.data(), entries_.size(), Real(0));
    factor_columns(left_[0], block);
    for (std::size_t k = 0; k < right_.size(); ++k) {
        stop_point();
        factor_rows(left_[k], right_[k], block, team);
        multiply_by_rows(left_[k], right_[k], block, team);
        update(left_[k], right_[k], left_[k + 1], block, team);
    }
    Real* const kept = block.rest + chase_at_;
    if (keeps_chase_)
        return chase({band_, entries_.data(), kept, kept + tiles_size(), diagonal, off_diagonal, nullptr}, team);
    visit_band(kept, [](Real* stored, const Real* made, std::size_t count) { std::copy_n(made, count, stored); });
    chase({band_, entries_.data(), nullptr, nullptr, diagonal, off_diagonal, nullptr}, team);
}

/// T of a panel, H_0 H_1 .. = I - V T V^T.
template <class Real>
void TwoStageReduction<Real>::make_triangle(const kernels::Panel<Real>& panel, Real* overlaps, Real* triangle) const {
    const std::size_t width = band_.width;
    const std::size_t count = std::min(panel.rows, panel.columns);
    multiply<Real>(count, count, panel.rows, 1, {panel.entries, panel.stride, true}, {panel.entries, panel.stride}, 0,
                   overlaps, width);
    std::fill_n(triangle, width * width, Real(0));
    for (std::size_t j = 0; j < count; ++j) {
        Real* const column = triangle + j * width;
        for (std::size_t l = 0; l < j; ++l) {
            const Real by = -panel.scales[j] * overlaps[j * width + l];
            const Real* const before = triangle + l * width;
            for (std::size_t i = 0; i <= l; ++i) column[i] += by * before[i];
        }
        column[j] = panel.scales[j];
    }
}

/// Makes the reflectors V of a panel of columns, V^T and T, and their R a part of the band.
template <class Real>
void TwoStageReduction<Real>::factor_columns(const Place& place, const Reduced& block) {
    const std::size_t width = band_.width;
    kernels::Panel<Real> columns = columns_of(place, block);
    columns.triangle = squares_.data();
    columns.work = work_.data();
    kernels_.factor_panel(columns);
    for (std::size_t j = 0; j < place.columns; ++j)
        std::copy_n(columns.triangle + j * place.columns, j + 1,
                    entries_.data() + band_.column_start(place.first + j) + place.first);
    if (place.columns < width) return;
    make_triangle(columns, squares_.data() + width * width, squares_.data() + 2 * width * width);
    copy_transposed(columns.entries, columns.stride, place.rows, width, transposed_.data(), width);
}

/// Applies the reflectors V of a panel of columns to the rows C of this panel, (I - V T^T V^T) C = C - V W^T with W =
/// C^T V T, and makes the reflectors of these rows.
template <class Real>
void TwoStageReduction<Real>::factor_rows(const Place& left, const Place& right, const Reduced& block,
                                          ThreadTeam& team) {
    const std::size_t width = band_.width;
    const kernels::Panel<Real> columns = columns_of(left, block);
    const Real* const rest = block.entries + right.first * block.stride + left.first;
    const Real* const triangle = squares_.data() + 2 * width * width;
    for_each_part(team, right.rows, part_of(right.rows), [&](std::size_t from, std::size_t end) {
        Real* const product = product_.data() + from * width;
        kernels_.project_on_panel({left.rows, end - from, width, rest + from * block.stride, block.stride,
                                   transposed_.data(), width, product, width});
        multiply<Real>(end - from, width, width, 1, {product, width, true}, {triangle, width}, 0, wide_.data() + from,
                       wide_stride_);
        copy_transposed(rest + from * block.stride, block.stride, width, end - from, rows_.data() + from, wide_stride_);
        multiply<Real>(end - from, width, width, -1, {wide_.data() + from, wide_stride_},
                       {columns.entries, columns.stride, true}, 1, rows_.data() + from, wide_stride_);
    });
    constexpr std::size_t line = kernels::alignment / sizeof(Real);
    for (std::size_t j = 0; j < width; ++j)
        std::fill(rows_.data() + j * wide_stride_ + right.rows,
                  rows_.data() + j * wide_stride_ + (right.rows + line - 1) / line * line, Real(0));
    Real* const found = squares_.data();
    kernels_.factor_panel(
        {right.rows, width, rows_.data(), wide_stride_, block.rest + right.scales, found, work_.data()});
    for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j <= i && j < right.rows; ++j)
            entries_[band_.column_start(right.first + j) + left.first + i] = found[i * width + j];
}

/// Applying the reflectors of both panels to the rest D of the block is (D - V W^T) (I - U S U^T) = D - V (W - U Z^T)^T
/// - X (U S^T)^T with X = D U and Z = W^T U S. This makes X, and the other factors beside it.
template <class Real>
void TwoStageReduction<Real>::multiply_by_rows(const Place& left, const Place& right, const Reduced& block,
                                               ThreadTeam& team) {
    const std::size_t width = band_.width;
    const std::size_t count = std::min(right.rows, width);
    const Real* const rest = block.entries + right.first * (block.stride + 1);
    Real* const x = tall_.data() + width * tall_stride_;
    const auto multiply_part = [&](std::size_t from, std::size_t end) {
        if (count == width)
            kernels_.multiply_by_panel({end - from, right.rows, width, rest + from, block.stride, rows_.data(),
                                        wide_stride_, x + from, tall_stride_});
        else
            multiply<Real>(end - from, count, right.rows, 1, {rest + from, block.stride}, {rows_.data(), wide_stride_},
                           0, x + from, tall_stride_);
    };
    for_each_part(team, left.rows - width, part_of(left.rows - width), multiply_part, [&] {
        weigh_rows(right, block);
        for (std::size_t j = 0; j < width; ++j)
            std::copy_n(block.entries + (left.first + j) * block.stride + right.first, left.rows - width,
                        tall_.data() + j * tall_stride_);
    });
}

/// Makes W - U Z^T and U S^T, and stores U.
template <class Real>
void TwoStageReduction<Real>::weigh_rows(const Place& right, const Reduced& block) {
    const std::size_t width = band_.width;
    const std::size_t count = std::min(right.rows, width);
    Real* const overlaps = squares_.data() + width * width;
    Real* const triangle = overlaps + 2 * width * width;
    Real* const z = triangle + width * width;
    Real* const of_u = z + width * width;
    Real* const w = wide_.data();
    const Factor<Real> u{rows_.data(), wide_stride_};
    make_triangle({right.rows, width, rows_.data(), wide_stride_, block.rest + right.scales, nullptr, nullptr},
                  overlaps, triangle);
    multiply<Real>(width, count, right.rows, 1, {w, wide_stride_, true}, u, 0, of_u, width);
    multiply<Real>(width, count, count, 1, {of_u, width}, {triangle, width}, 0, z, width);
    multiply<Real>(right.rows, width, count, -1, u, {z, width, true}, 1, w, wide_stride_);
    multiply<Real>(right.rows, count, count, 1, u, {triangle, width, true}, 0, w + width * wide_stride_, wide_stride_);
    copy_transposed(rows_.data(), wide_stride_, right.rows, width,
                    block.entries + right.first * block.stride + right.first - width, block.stride);
}

/// Updates the rest of the block, and factors the next panel of columns beside the others.
template <class Real>
void TwoStageReduction<Real>::update(const Place& left, const Place& right, const Place& next, const Reduced& block,
                                     ThreadTeam& team) {
    const std::size_t width = band_.width;
    const std::size_t inner = width + std::min(right.rows, width);
    Real* const rest = block.entries + right.first * (block.stride + 1);
    const auto update_columns = [&](std::size_t from, std::size_t end) {
        multiply<Real>(left.rows - width, end - from, inner, -1, {tall_.data(), tall_stride_},
                       {wide_.data() + from, wide_stride_, true}, 1, rest + from * block.stride, block.stride);
    };
    for_each_part(
        team, right.rows - next.columns, part_of(right.rows - next.columns),
        [&](std::size_t from, std::size_t end) { update_columns(next.columns + from, next.columns + end); },
        [&] {
            update_columns(0, next.columns);
            factor_columns(next, block);
        });
}

/// A bundle of sweeps waits for the one before, which an earlier part of the work does, so that it never waits in vain.
template <class Real>
void TwoStageReduction<Real>::chase(const kernels::BandReduction<Real>& band, ThreadTeam& team) {
    std::vector<Progress> done(band_.bundles());
    team.for_each(done.size(), [&](std::size_t bundle) {
        const std::size_t first = bundle * kernels::BandShape::bundle;
        const std::size_t end = band_.bundle_end(bundle);
        const std::size_t tiles = band.left == nullptr ? 0 : band_.tiles_before(first);
        kernels::BandReduction<Real> one = band;
        if (band.left != nullptr) {
            one.left += tiles * band_.tile();
            one.right += tiles * band_.tile();
        }
        const std::size_t ticks = band_.ticks(bundle);
        const std::size_t ticks_before = bundle == 0 ? 0 : band_.ticks(bundle - 1);
        try {
            AlignedArray<Real> work(9 * band_.width);
            one.work = work.data();
            for (std::size_t tick = 0; tick < ticks; ++tick) {
                stop_point();
                if (bundle > 0) done[bundle - 1].await(std::min(ticks_before, tick + kernels::BandShape::apart));
                kernels_.chase_bulges(one, bundle, tick);
                done[bundle].reach(tick + 1);
            }
        } catch (...) {
            done[bundle].reach(ticks);  // nobody is to wait for it
            throw;
        }
        if (band.left == nullptr) return;
        const std::size_t made = band_.tiles_before(end) - tiles;
        kernels_.complete_tiles(band_, one.left, made);
        kernels_.complete_tiles(band_, one.right, made);
    });
    const std::size_t last = short_side_ - 1;
    band.diagonal[last] = band.entries[band_.column_start(last) + last];
}

template <class Real>
void TwoStageReduction<Real>::prepare_vectors(const Reduced& block, ThreadTeam& team) {
    if (keeps_chase_) return;
    tiles_ = AlignedArray<Real>(2 * tiles_size());
    std::fill_n(entries_.data(), entries_.size(), Real(0));
    visit_band(block.rest + chase_at_,
               [](const Real* stored, Real* place, std::size_t count) { std::copy_n(stored, count, place); });
    std::vector<double> known(2 * short_side_);
    chase({band_, entries_.data(), tiles_.data(), tiles_.data() + tiles_size(), known.data(),
           known.data() + short_side_, nullptr},
          team);
}

template <class Real>
void TwoStageReduction<Real>::transform_to_band(Side side, const Reduced& block, Real* vectors,
                                                std::size_t wanted) const {
    const Real* const tiles = keeps_chase_ ? block.rest + chase_at_ : tiles_.data();
    kernels_.apply_chase(band_, tiles + (side == Side::left ? 0 : tiles_size()), vectors, wanted);
}

template <class Real>
void TwoStageReduction<Real>::transform(Side side, const Reduced& block, Real* vectors, std::size_t wanted) const {
    transform_to_band(side, block, vectors, wanted);
    AlignedArray<Real> room(side == Side::left ? 0 : band_.width * wide_stride_);
    for (auto place = places(side).rbegin(); place != places(side).rend(); ++place) {
        stop_point();
        kernels_.apply_panel(panel(side, *place, block, room.data()), vectors + place->first * kernels::applied_lanes,
                             wanted);
    }
}

/// x <- x - V (T (V^T x)) for one panel after the other, from the last.
template <class Real>
void TwoStageReduction<Real>::transform_from_band(Side side, const Reduced& block, Real* columns, std::size_t stride,
                                                  std::size_t wanted, ThreadTeam& team) const {
    const std::size_t width = band_.width;
    const std::vector<Place>& all = places(side);
    const std::size_t room_size = side == Side::left ? 0 : width * wide_stride_;
    AlignedArray<Real> triangles(all.size() * width * width);
    team.for_each(all.size(), [&](std::size_t k) {
        AlignedArray<Real> room(room_size);
        AlignedArray<Real> overlaps(width * width);
        make_triangle(panel(side, all[k], block, room.data()), overlaps.data(), triangles.data() + k * width * width);
    });
    for_each_part(team, wanted, part_of(wanted), [&](std::size_t from, std::size_t end) {
        AlignedArray<Real> room(room_size);
        AlignedArray<Real> products(2 * width * (end - from));
        Real* const weights = products.data() + width * (end - from);
        for (std::size_t k = all.size(); k-- > 0;) {
            stop_point();
            const kernels::Panel<Real> one = panel(side, all[k], block, room.data());
            const std::size_t count = std::min(one.rows, one.columns);
            Real* const rows = columns + from * stride + all[k].first;
            multiply<Real>(count, end - from, one.rows, 1, {one.entries, one.stride, true}, {rows, stride}, 0,
                           products.data(), width);
            multiply<Real>(count, end - from, count, 1, {triangles.data() + k * width * width, width},
                           {products.data(), width}, 0, weights, width);
            multiply<Real>(one.rows, end - from, count, -1, {one.entries, one.stride}, {weights, width}, 1, rows,
                           stride);
        }
    });
}

template class TwoStageReduction<float>;
template class TwoStageReduction<double>;

}  // namespace spiked::estimators
