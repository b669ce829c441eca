#include "estimators/causal/ordered_products.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

RowMatrix product_normals(std::size_t rows, std::size_t columns, const char* cell) {
    RowMatrix found(rows, columns);
    fill_normal(stream::Stream(stream::StudySeed::parse("0x2C"), cell, stream::Role::noise, 0), found.entries);
    return found;
}

/// Shapes with and without full tiles.
struct Extent {
    std::size_t rows;
    std::size_t inner;
    std::size_t columns;
};
constexpr Extent extents[] = {{1, 1, 1}, {3, 5, 2}, {4, 8, 8}, {9, 17, 13}, {130, 33, 40}, {6, 0, 11}};

// Every sum below is written in the order that the headers promise, so the comparison is exact.

TEST(OrderedProductsReference, ProductsHaveTheirOrderOfSums) {
    for (const auto& [rows, inner, columns] : extents) {
        const RowMatrix a = product_normals(rows, inner, "left");
        const RowMatrix b = product_normals(inner, columns, "right");
        const RowMatrix c = ordered_product(a, b);
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t j = 0; j < columns; ++j) {
                double sum = 0.0;
                for (std::size_t k = 0; k < inner; ++k) sum += a.row(i)[k] * b.row(k)[j];
                ASSERT_EQ(c.row(i)[j], sum) << rows << "x" << inner << "x" << columns;
            }
    }
}

TEST(OrderedProductsReference, OuterProductsAreAddedRowByRow) {
    for (const auto& [rows, m, n] : extents) {
        const RowMatrix x = product_normals(rows, m, "x");
        const RowMatrix y = product_normals(rows, n, "y");
        RowMatrix sums = product_normals(m, n, "start");
        RowMatrix expected = sums;
        add_outer_products(sums, x, y);
        for (std::size_t t = 0; t < rows; ++t)
            for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < n; ++j) expected.row(i)[j] += x.row(t)[i] * y.row(t)[j];
        EXPECT_EQ(sums.entries, expected.entries);
    }
}

TEST(OrderedProductsReference, RotationsActOneAfterTheOther) {
    for (const std::size_t columns : {1, 4, 7, 16, 37}) {
        RowMatrix a = product_normals(6, columns, "rotated");
        RowMatrix expected = a;
        const RowRotation2 rotations[] = {{0.6, 0.8}, {0.8, -0.6}, {0.0, 1.0}};
        rotate_rows_upwards(a, 3, rotations);
        for (std::size_t r = 0; r < 3; ++r)
            for (std::size_t j = 0; j < columns; ++j) {
                double* upper = expected.row(3 - r) + j;
                double* lower = expected.row(4 - r) + j;
                const double u = *upper;
                const double l = *lower;
                *upper = rotations[r].cosine * u - rotations[r].sine * l;
                *lower = rotations[r].sine * u + rotations[r].cosine * l;
            }
        EXPECT_EQ(a.entries, expected.entries);
    }
}

TEST(OrderedProductsReference, UpdatesOfSquareParts) {
    constexpr std::size_t m = 23;
    constexpr std::size_t first = 3;
    constexpr std::size_t end = 21;
    const RowMatrix a = product_normals(m, m, "square");
    const RowMatrix u = product_normals(1, m, "u");
    const RowMatrix v = product_normals(1, m, "v");
    std::vector<double> sums(m, 0.5);
    std::vector<double> expected(m, 0.5);
    add_weighted_rows(a, first, end, u.row(0), sums.data());
    RowMatrix outer = a;
    RowMatrix symmetric = a;
    subtract_outer(outer, first, end, u.row(0), v.row(0));
    subtract_symmetric(symmetric, first, end, u.row(0), v.row(0));
    const auto inside = [&](std::size_t i) { return i >= first && i < end; };
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < m; ++j) {
            const double ui = u.row(0)[i];
            const double uj = u.row(0)[j];
            const double vi = v.row(0)[i];
            const double vj = v.row(0)[j];
            const bool changed = inside(i) && inside(j);
            if (changed) expected[j] += ui * a.row(i)[j];
            EXPECT_EQ(outer.row(i)[j], changed ? a.row(i)[j] - ui * vj : a.row(i)[j]);
            EXPECT_EQ(symmetric.row(i)[j], changed ? a.row(i)[j] - (ui * vj + vi * uj) : a.row(i)[j]);
        }
    EXPECT_EQ(sums, expected);
    EXPECT_EQ(transposed(a).row(2)[5], a.row(5)[2]);
}

}  // namespace
}  // namespace spiked::estimators
