#include "estimators/svd/gram_reduction.hpp"

#include <algorithm>
#include <cmath>

// Fortran passes the length of a character argument after all others.
extern "C" void dsyrk_(const char* triangle, const char* transposed, const int* size, const int* inner,
                       const double* factor, const double* entries, const int* stride, const double* kept,
                       double* product, const int* product_stride, std::size_t, std::size_t);
extern "C" void dgemm_(const char* first_transposed, const char* second_transposed, const int* rows, const int* columns,
                       const int* inner, const double* factor, const double* first, const int* first_stride,
                       const double* second, const int* second_stride, const double* kept, double* product,
                       const int* product_stride, std::size_t, std::size_t);

namespace spiked::estimators {
namespace {

constexpr std::size_t tile = kernels::alignment / sizeof(double);

std::size_t tiled(std::size_t size) { return (size + tile - 1) / tile * tile; }

}  // namespace

GramReduction::GramReduction(void (*tridiagonalise)(const kernels::SymmetricReduction&), std::size_t long_side,
                             std::size_t short_side)
    : tridiagonalise_(tridiagonalise),
      long_side_(long_side),
      short_side_(short_side),
      // The stride is an odd number of cache lines, so that columns do not share cache sets.
      stride_(tiled(short_side) + (tiled(short_side) % (2 * tile) == 0 ? tile : 0)),
      gram_(stride_ * tiled(short_side)),
      work_(2 * stride_) {}

bool GramReduction::reduce(const double* entries, std::size_t stride, double* right, double* scales, double* diagonal,
                           double* off_diagonal) {
    const int size = static_cast<int>(short_side_);
    const int inner = static_cast<int>(long_side_);
    const int entries_stride = static_cast<int>(stride);
    const int gram_stride = static_cast<int>(stride_);
    const double one = 1.0;
    const double zero = 0.0;
    double* const gram = gram_.data();
    dsyrk_("L", "T", &size, &inner, &one, entries, &entries_stride, &zero, gram, &gram_stride, 1, 1);
    for (std::size_t j = 0; j < short_side_; ++j)
        for (std::size_t i = j / tile * tile; i < j; ++i) gram[j * stride_ + i] = gram[i * stride_ + j];
    tridiagonalise_({short_side_, gram, stride_, right, scales, diagonal, off_diagonal, work_.data()});
    const double largest = *std::max_element(diagonal, diagonal + short_side_);
    double before = 0.0;
    for (std::size_t i = 0; i < short_side_; ++i) {
        const double pivot = diagonal[i] - before * before;
        if (!(pivot > smallest_value * smallest_value * largest)) return false;
        diagonal[i] = std::sqrt(pivot);
        if (i + 1 < short_side_) off_diagonal[i] = before = off_diagonal[i] / diagonal[i];
    }
    return true;
}

void GramReduction::left_vectors(const double* entries, std::size_t stride, const arma::mat& right,
                                 arma::mat& left) const {
    const int rows = static_cast<int>(long_side_);
    const int inner = static_cast<int>(short_side_);
    const int columns = static_cast<int>(right.n_cols);
    const int entries_stride = static_cast<int>(stride);
    const double one = 1.0;
    const double zero = 0.0;
    dgemm_("N", "N", &rows, &columns, &inner, &one, entries, &entries_stride, right.memptr(), &inner, &zero,
           left.memptr(), &rows, 1, 1);
    left = arma::normalise(left);
}

}  // namespace spiked::estimators
