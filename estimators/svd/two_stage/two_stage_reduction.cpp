#include "estimators/svd/two_stage/two_stage_reduction.hpp"

#include <algorithm>

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
TwoStageReduction<Real>::TwoStageReduction(const kernels::Kernels<Real>& kernels, std::size_t long_side,
                                           std::size_t short_side, std::size_t width)
    : kernels_(kernels),
      long_side_(long_side),
      short_side_(short_side),
      band_{short_side, width},
      entries_(band_.entries()),
      tall_(2 * width * kernels::padded<Real>(long_side)),
      wide_(2 * width * kernels::padded<Real>(short_side)),
      product_(width * kernels::padded<Real>(short_side)),
      transposed_(width * long_side),
      squares_(4 * width * width),
      work_(9 * width) {
    const auto add = [&](std::vector<Place>& to, std::size_t first, std::size_t rows, std::size_t columns) {
        const std::size_t stride = kernels::padded<Real>(rows);
        to.push_back({first, rows, columns, stride, stored_, stored_ + columns * stride});
        stored_ += columns * stride + width;
    };
    for (std::size_t start = 0; start < short_side; start += width) {
        add(left_, start, long_side - start, std::min(width, short_side - start));
        if (start + width < short_side) add(right_, start + width, short_side - start - width, width);
    }
    left_tiles_ = stored_;
    right_tiles_ = left_tiles_ + band_.tiles() * band_.tile();
    stored_ = kernels::padded<Real>(right_tiles_ + band_.tiles() * band_.tile());
}

template <class Real>
kernels::Panel<Real> TwoStageReduction<Real>::panel(const Place& place, Real* reflectors) const {
    return {place.rows, place.columns, reflectors + place.entries, place.stride, reflectors + place.scales,
            nullptr,    nullptr};
}

template <class Real>
void TwoStageReduction<Real>::reduce(Real* entries, std::size_t stride, Real* reflectors, double* diagonal,
                                     double* off_diagonal) {
    std::fill_n(entries_.data(), entries_.size(), Real(0));
    for (std::size_t k = 0; k < left_.size(); ++k) {
        factor_columns(left_[k], entries, stride, reflectors);
        if (k == right_.size()) break;
        factor_rows(left_[k], right_[k], entries, stride, reflectors);
        update(left_[k], right_[k], entries, stride, reflectors);
    }
    kernels_.chase_bulges({band_, entries_.data(), reflectors + left_tiles_, reflectors + right_tiles_, diagonal,
                           off_diagonal, work_.data()});
}

/// T of a panel, H_0 H_1 .. = I - V T V^T.
template <class Real>
void TwoStageReduction<Real>::make_triangle(const kernels::Panel<Real>& panel, Real* triangle) {
    const std::size_t width = band_.width;
    Real* const overlaps = squares_.data() + width * width;
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

/// Makes the reflectors of a panel of columns, and their R a part of the band.
template <class Real>
void TwoStageReduction<Real>::factor_columns(const Place& place, const Real* entries, std::size_t stride,
                                             Real* reflectors) {
    kernels::Panel<Real> columns = panel(place, reflectors);
    columns.triangle = squares_.data();
    columns.work = work_.data();
    constexpr std::size_t line = kernels::alignment / sizeof(Real);
    for (std::size_t j = 0; j < place.columns; ++j)
        std::copy_n(entries + (place.first + j) * stride + place.first, (place.rows + line - 1) / line * line,
                    columns.entries + j * place.stride);
    kernels_.factor_panel(columns);
    for (std::size_t j = 0; j < place.columns; ++j)
        std::copy_n(columns.triangle + j * place.columns, j + 1,
                    entries_.data() + band_.column_start(place.first + j) + place.first);
}

/// Applies the reflectors V of a panel of columns to the rows of this panel, (I - V T^T V^T) C = C - V W^T with W = C^T
/// V T, and makes the reflectors of these rows.
template <class Real>
void TwoStageReduction<Real>::factor_rows(const Place& left, const Place& right, const Real* entries,
                                          std::size_t stride, Real* reflectors) {
    const std::size_t width = band_.width;
    const kernels::Panel<Real> columns = panel(left, reflectors);
    kernels::Panel<Real> rows = panel(right, reflectors);
    rows.triangle = squares_.data();
    rows.work = work_.data();
    const Real* const rest = entries + right.first * stride + left.first;
    Real* const triangle = squares_.data() + 2 * width * width;
    make_triangle(columns, triangle);
    copy_transposed(columns.entries, columns.stride, left.rows, width, transposed_.data(), width);
    kernels_.project_on_panel(
        {left.rows, right.rows, width, rest, stride, transposed_.data(), width, product_.data(), width});
    multiply<Real>(right.rows, width, width, 1, {product_.data(), width, true}, {triangle, width}, 0, wide_.data(),
                   right.stride);
    copy_transposed(rest, stride, width, right.rows, rows.entries, rows.stride);
    for (std::size_t j = 0; j < width; ++j)
        std::fill(rows.entries + j * rows.stride + rows.rows, rows.entries + (j + 1) * rows.stride, Real(0));
    multiply<Real>(right.rows, width, width, -1, {wide_.data(), right.stride}, {columns.entries, columns.stride, true},
                   1, rows.entries, rows.stride);
    kernels_.factor_panel(rows);
    for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j <= i && j < right.rows; ++j)
            entries_[band_.column_start(right.first + j) + left.first + i] = rows.triangle[i * width + j];
}

/// Applies the reflectors of both panels to the rest D of the block: (D - V W^T) (I - U S U^T) = D - V (W - U Z^T)^T -
/// (D U S) U^T with Z = W^T U S.
template <class Real>
void TwoStageReduction<Real>::update(const Place& left, const Place& right, Real* entries, std::size_t stride,
                                     Real* reflectors) {
    const std::size_t width = band_.width;
    const std::size_t count = std::min(right.rows, width);
    const std::size_t below = left.rows - width;
    const kernels::Panel<Real> columns = panel(left, reflectors);
    const kernels::Panel<Real> rows = panel(right, reflectors);
    Real* const rest = entries + right.first * stride + right.first;
    Real* const triangle = squares_.data() + 2 * width * width;
    Real* const square = triangle + width * width;
    Real* const w = wide_.data();
    make_triangle(rows, triangle);
    multiply<Real>(right.rows, count, count, 1, {rows.entries, rows.stride}, {triangle, width}, 0, product_.data(),
                   right.stride);
    multiply<Real>(width, count, right.rows, 1, {w, right.stride, true}, {product_.data(), right.stride}, 0, square,
                   width);
    multiply<Real>(right.rows, width, count, -1, {rows.entries, rows.stride}, {square, width, true}, 1, w,
                   right.stride);
    std::copy_n(rows.entries, count * right.stride, w + width * right.stride);
    std::copy_n(columns.entries, width * columns.stride, tall_.data());
    Real* const x = tall_.data() + width * columns.stride + width;
    if (count == width)
        kernels_.multiply_by_panel(
            {below, right.rows, width, rest, stride, product_.data(), right.stride, x, columns.stride});
    else
        multiply<Real>(below, count, right.rows, 1, {rest, stride}, {product_.data(), right.stride}, 0, x,
                       columns.stride);
    multiply<Real>(below, right.rows, width + count, -1, {tall_.data() + width, columns.stride},
                   {w, right.stride, true}, 1, rest, stride);
}

template <class Real>
void TwoStageReduction<Real>::transform_to_band(Side side, Real* reflectors, Real* vectors, std::size_t wanted) const {
    kernels_.apply_chase(band_, reflectors + (side == Side::left ? left_tiles_ : right_tiles_), vectors, wanted);
}

template <class Real>
void TwoStageReduction<Real>::transform(Side side, Real* reflectors, Real* vectors, std::size_t wanted) const {
    transform_to_band(side, reflectors, vectors, wanted);
    for (auto place = places(side).rbegin(); place != places(side).rend(); ++place)
        kernels_.apply_panel(panel(*place, reflectors), vectors + place->first * kernels::applied_lanes, wanted);
}

/// x <- x - V (T (V^T x)) for one panel after the other, from the last.
template <class Real>
void TwoStageReduction<Real>::transform_from_band(Side side, Real* reflectors, Real* columns, std::size_t stride,
                                                  std::size_t wanted) {
    const std::size_t width = band_.width;
    Real* const triangle = squares_.data() + 2 * width * width;
    std::vector<Real> products(2 * width * wanted);
    Real* const weights = products.data() + width * wanted;
    for (auto place = places(side).rbegin(); place != places(side).rend(); ++place) {
        const kernels::Panel<Real> one = panel(*place, reflectors);
        const std::size_t count = std::min(one.rows, one.columns);
        Real* const rows = columns + place->first;
        make_triangle(one, triangle);
        multiply<Real>(count, wanted, one.rows, 1, {one.entries, one.stride, true}, {rows, stride}, 0, products.data(),
                       width);
        multiply<Real>(count, wanted, count, 1, {triangle, width}, {products.data(), width}, 0, weights, width);
        multiply<Real>(one.rows, wanted, count, -1, {one.entries, one.stride}, {weights, width}, 1, rows, stride);
    }
}

template class TwoStageReduction<float>;
template class TwoStageReduction<double>;

}  // namespace spiked::estimators
