#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>
#include <limits>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/c/spiked.h"

namespace {

/// The same matrix with other distances, in entries, between neighbouring rows and columns. All other entries are NaN,
/// so that a call that reads one of them fails.
template <class Number>
std::vector<double> eigenvalues_of(const arma::mat& x, std::int64_t row_stride, std::int64_t col_stride,
                                   const char* center) {
    const std::size_t last = (x.n_rows - 1) * row_stride + (x.n_cols - 1) * col_stride;
    std::vector<Number> entries(last + 1, std::numeric_limits<Number>::quiet_NaN());
    for (std::size_t i = 0; i < x.n_rows; ++i)
        for (std::size_t j = 0; j < x.n_cols; ++j)
            entries[i * row_stride + j * col_stride] = static_cast<Number>(x(i, j));
    const spiked_matrix data{entries.data(),
                             sizeof(Number) == sizeof(float) ? SPIKED_F32 : SPIKED_F64,
                             static_cast<std::int64_t>(x.n_rows),
                             static_cast<std::int64_t>(x.n_cols),
                             row_stride,
                             col_stride};
    spiked_pca_options options{};
    options.center = center;
    std::vector<double> values(x.n_cols);
    spiked_components found{};
    found.capacity = static_cast<std::int64_t>(values.size());
    found.eigenvalues = values.data();
    EXPECT_EQ(spiked_pca(&data, &options, &found), SPIKED_OK) << spiked_last_error();
    EXPECT_EQ(found.values, static_cast<std::int64_t>(x.n_cols));
    return values;
}

TEST(CInterfaceReference, EigenvaluesAreThoseOfTheCovarianceInEveryLayout) {
    // 20 samples of 3 features with means far from 0.
    arma::mat x(20, 3);
    for (arma::uword i = 0; i < x.n_rows; ++i)
        for (arma::uword j = 0; j < x.n_cols; ++j)
            x(i, j) = std::sin(1.0 + 3.7 * static_cast<double>(i) + 1.3 * static_cast<double>(i * j)) +
                      5.0 * static_cast<double>(j + 1);
    const arma::vec centred = arma::sort(arma::eig_sym(arma::cov(x)), "descend");
    const arma::vec plain = arma::sort(arma::eig_sym(arma::mat(x.t() * x / 20.0)), "descend");
    // Rows after rows, columns after columns, with space between, and neither side dense.
    const std::int64_t strides[][2] = {{3, 1}, {5, 1}, {1, 20}, {1, 23}, {2, 41}, {7, 2}};
    for (const auto& [row, col] : strides) {
        const auto doubles = eigenvalues_of<double>(x, row, col, nullptr);
        const auto floats = eigenvalues_of<float>(x, row, col, "columns");
        const auto uncentred = eigenvalues_of<double>(x, row, col, "none");
        for (std::size_t k = 0; k < 3; ++k) {
            EXPECT_NEAR(doubles[k], centred(k), 1e-12) << row << " " << col;
            EXPECT_NEAR(floats[k], centred(k), 1e-5) << row << " " << col;
            EXPECT_NEAR(uncentred[k], plain(k), 1e-10) << row << " " << col;
        }
    }
}

}  // namespace
