#include "estimators/causal/deterministic_eigen.hpp"

#include <gtest/gtest.h>

#include <armadillo>
#include <bit>
#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

RowMatrix normal_rows(std::size_t rows, std::size_t columns, const char* cell) {
    RowMatrix found(rows, columns);
    fill_normal(stream::Stream(stream::StudySeed::parse("0x2C"), cell, stream::Role::noise, 0), found.entries);
    return found;
}

RowMatrix gram(const RowMatrix& x) {
    RowMatrix sums(x.columns, x.columns);
    add_outer_products(sums, x, x);
    return sums;
}

arma::mat armadillo(const RowMatrix& a) { return arma::mat(a.entries.data(), a.columns, a.rows).t(); }

struct EigenCase {
    std::size_t m;
    std::size_t rows;
};

class DeterministicEigenReference : public testing::TestWithParam<EigenCase> {};

TEST_P(DeterministicEigenReference, AgreesWithLapack) {
    const auto [m, rows] = GetParam();
    const RowMatrix matrix = gram(normal_rows(rows, m, "eigen"));
    const SymmetricEigen eigen = deterministic_eigen(matrix);
    const arma::mat dense = armadillo(matrix);
    const arma::vec values = arma::reverse(arma::eig_sym(dense));
    const arma::mat vectors = armadillo(eigen.vectors).t();
    const double limit = 1e-12 * (values(0) + 1e-300);
    for (std::size_t k = 0; k < m; ++k) EXPECT_NEAR(eigen.values[k], values(k), limit) << k;
    EXPECT_LT(arma::abs(vectors.t() * vectors - arma::eye(m, m)).max(), 1e-12);
    EXPECT_LT(arma::abs(dense * vectors - vectors * arma::diagmat(arma::vec(eigen.values))).max(), limit);
    for (std::size_t k = 0; k < m; ++k) {
        const arma::vec column = vectors.col(k);
        EXPECT_GT(column(arma::abs(column).index_max()), 0.0) << k;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeterministicEigenReference,
                         testing::Values(EigenCase{1, 4}, EigenCase{2, 5}, EigenCase{3, 1}, EigenCase{7, 20},
                                         EigenCase{33, 8}, EigenCase{64, 256}, EigenCase{130, 40}),
                         [](const auto& shape) {
                             return "m" + std::to_string(shape.param.m) + "rows" + std::to_string(shape.param.rows);
                         });

TEST(DeterministicEigenReference, SolvesMatricesThatAreKnown) {
    RowMatrix two(2, 2);
    two.entries = {2.0, 1.0, 1.0, 2.0};
    const SymmetricEigen eigen = deterministic_eigen(two);
    EXPECT_NEAR(eigen.values[0], 3.0, 1e-15);
    EXPECT_NEAR(eigen.values[1], 1.0, 1e-15);
    EXPECT_NEAR(eigen.vectors.row(0)[0], std::sqrt(0.5), 1e-15);
    EXPECT_NEAR(eigen.vectors.row(0)[1], std::sqrt(0.5), 1e-15);
    // Toeplitz with 2 on the diagonal and -1 beside it: values 2 - 2 cos(pi k / (m + 1)).
    constexpr std::size_t m = 40;
    RowMatrix chain(m, m);
    for (std::size_t i = 0; i < m; ++i) {
        chain.row(i)[i] = 2e40;
        if (i + 1 < m) chain.row(i)[i + 1] = chain.row(i + 1)[i] = -1e40;
    }
    const SymmetricEigen waves = deterministic_eigen(chain);
    for (std::size_t k = 1; k <= m; ++k)
        EXPECT_NEAR(waves.values[m - k], 1e40 * (2.0 - 2.0 * std::cos(M_PI * static_cast<double>(k) / (m + 1.0))), 1e26)
            << k;
    for (const double value : deterministic_eigen(RowMatrix(5, 5)).values) EXPECT_EQ(value, 0.0);
    EXPECT_TRUE(deterministic_eigen(RowMatrix(0, 0)).values.empty());
}

TEST(DeterministicEigenStability, GivesTheSameBitsOnEveryMachine) {
    const SymmetricEigen eigen = deterministic_eigen(gram(normal_rows(100, 50, "bits")));
    std::uint64_t digest = 1469598103934665603ULL;
    for (const auto* numbers : {&eigen.values, &eigen.vectors.entries})
        for (const double number : *numbers)
            digest = (digest ^ std::bit_cast<std::uint64_t>(number)) * 1099511628211ULL;
    EXPECT_EQ(digest, 10128644818469880828ULL);
}

TEST(DeterministicEigenReference, RejectsMatricesThatAreNotFinite) {
    RowMatrix matrix(2, 2);
    matrix.entries = {1.0, 0.0, 0.0, std::numeric_limits<double>::infinity()};
    EXPECT_THROW((void)deterministic_eigen(matrix), Error);
}

}  // namespace
}  // namespace spiked::estimators
