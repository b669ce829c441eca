#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace spiked::estimators {

/// A dense matrix of doubles in rows, one after the other.
struct RowMatrix {
    RowMatrix() = default;
    RowMatrix(std::size_t row_count, std::size_t column_count)
        : rows(row_count), columns(column_count), entries(row_count * column_count) {}

    [[nodiscard]] double* row(std::size_t i) { return entries.data() + i * columns; }
    [[nodiscard]] const double* row(std::size_t i) const { return entries.data() + i * columns; }

    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<double> entries;
};

/// Products whose sums have a fixed order, so that they give the same bits on every machine; those of a BLAS do not.
/// They are vectorised over outputs, with AVX2 where the processor has it and without fused multiplication.

/// A B: entry (i, j) is the sum over k = 0, 1, ... of A(i, k) B(k, j), in this order and starting from 0.
[[nodiscard]] RowMatrix ordered_product(const RowMatrix& a, const RowMatrix& b);
/// sums(i, j) += the sum over rows t of x(t, i) y(t, j), row by row.
void add_outer_products(RowMatrix& sums, const RowMatrix& x, const RowMatrix& y);
[[nodiscard]] RowMatrix transposed(const RowMatrix& a);

/// One rotation of the rows i and i + 1: row i becomes cosine row(i) - sine row(i + 1), and row i + 1 becomes
/// sine row(i) + cosine row(i + 1).
struct RowRotation2 {
    double cosine;
    double sine;
};
/// Applies rotations[0] to the rows `last` and last + 1, rotations[1] to last - 1 and last, and so on.
void rotate_rows_upwards(RowMatrix& a, std::size_t last, std::span<const RowRotation2> rotations);

/// y(j) += the sum over i of x(i) a(i, j), for first <= i, j < end.
void add_weighted_rows(const RowMatrix& a, std::size_t first, std::size_t end, const double* x, double* y);
/// a(i, j) -= u(i) v(j) for first <= i, j < end.
void subtract_outer(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v);
/// a(i, j) -= u(i) v(j) + v(i) u(j) for first <= i, j < end.
void subtract_symmetric(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v);

}  // namespace spiked::estimators
