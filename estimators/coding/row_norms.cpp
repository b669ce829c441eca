#include "estimators/coding/row_norms.hpp"

#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "core/runtime/processor.hpp"

namespace spiked::estimators {
namespace {

#define SPIKED_INLINE inline __attribute__((always_inline))

template <class Real>
SPIKED_INLINE void add_squares(const Real* __restrict block, std::size_t rows, std::size_t columns,
                               Real* __restrict sums) {
    for (std::size_t j = 0; j < columns; ++j)
        for (std::size_t t = 0; t < rows; ++t) sums[t] += block[j * rows + t] * block[j * rows + t];
}

void plain_squares(const float* block, std::size_t rows, std::size_t columns, float* sums) {
    add_squares(block, rows, columns, sums);
}

#if defined(__x86_64__)
// Each row has its own sum, so the width of the registers changes no bit of it.
__attribute__((target("avx2"), optimize("O3"))) void avx2_squares(const float* block, std::size_t rows,
                                                                  std::size_t columns, float* sums) {
    add_squares(block, rows, columns, sums);
}
#endif

void sum_squares(const arma::fmat& rows, float* sums) {
#if defined(__x86_64__)
    if (processor().avx2) return avx2_squares(rows.memptr(), rows.n_rows, rows.n_cols, sums);
#endif
    plain_squares(rows.memptr(), rows.n_rows, rows.n_cols, sums);
}

void sum_squares(const arma::mat& rows, double* sums) { add_squares(rows.memptr(), rows.n_rows, rows.n_cols, sums); }

template <class Real>
std::vector<double> norms_of(const arma::Mat<Real>& rows) {
    std::vector<Real> squares(rows.n_rows, Real{0});
    sum_squares(rows, squares.data());
    // Below this limit, squares of entries have lost digits.
    const Real least = std::numeric_limits<Real>::min() / std::numeric_limits<Real>::epsilon();
    std::vector<double> norms(rows.n_rows);
    for (arma::uword t = 0; t < rows.n_rows; ++t) {
        if (squares[t] > least && squares[t] <= std::numeric_limits<Real>::max()) {
            norms[t] = std::sqrt(static_cast<double>(squares[t]));
            continue;
        }
        // The entries are checked, because arma::norm returns 0 for a row of zeros and a NaN.
        if (!rows.row(t).is_finite())
            throw input_error("a row holds NaN or infinity (it has no direction): clean the data first");
        norms[t] = arma::norm(arma::conv_to<arma::rowvec>::from(rows.row(t)));
        if (!std::isfinite(norms[t]))
            throw input_error("the norm of a row with entries up to {:.6g} is beyond double: scale the data",
                              static_cast<double>(arma::abs(rows.row(t)).max()));
    }
    return norms;
}

}  // namespace

std::vector<double> row_norms(const arma::mat& rows) { return norms_of(rows); }
std::vector<double> row_norms(const arma::fmat& rows) { return norms_of(rows); }

}  // namespace spiked::estimators
