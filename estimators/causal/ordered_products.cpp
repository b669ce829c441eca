#include "estimators/causal/ordered_products.hpp"

#include <cstring>

#include "core/runtime/processor.hpp"

namespace spiked::estimators {
namespace {

#define SPIKED_ORDERED inline __attribute__((always_inline))

/// Four doubles side by side.
using Quad [[gnu::vector_size(32), gnu::may_alias]] = double;
constexpr std::size_t quad_lanes = 4;

// Loads from and stores to any address.
SPIKED_ORDERED void load(Quad& quad, const double* at) { std::memcpy(&quad, at, sizeof quad); }
SPIKED_ORDERED void store(double* at, const Quad& quad) { std::memcpy(at, &quad, sizeof quad); }

/// `height` rows times 2 quads of columns of the product.
template <std::size_t height>
SPIKED_ORDERED void product_tile(const RowMatrix& a, const RowMatrix& b, std::size_t i, std::size_t j, RowMatrix& c) {
    Quad sums[height][2] = {};
    const double* right = b.entries.data() + j;
    for (std::size_t k = 0; k < a.columns; ++k, right += b.columns) {
        Quad first;
        Quad second;
        load(first, right);
        load(second, right + quad_lanes);
        for (std::size_t r = 0; r < height; ++r) {
            const double left = a.row(i + r)[k];
            sums[r][0] += left * first;
            sums[r][1] += left * second;
        }
    }
    for (std::size_t r = 0; r < height; ++r) {
        store(c.row(i + r) + j, sums[r][0]);
        store(c.row(i + r) + j + quad_lanes, sums[r][1]);
    }
}

SPIKED_ORDERED void product_kernel(const RowMatrix& a, const RowMatrix& b, RowMatrix& c) {
    std::size_t j = 0;
    for (; j + 2 * quad_lanes <= b.columns; j += 2 * quad_lanes) {
        std::size_t i = 0;
        for (; i + 4 <= a.rows; i += 4) product_tile<4>(a, b, i, j, c);
        for (; i < a.rows; ++i) product_tile<1>(a, b, i, j, c);
    }
    for (; j < b.columns; ++j)
        for (std::size_t i = 0; i < a.rows; ++i) {
            double sum = 0.0;
            for (std::size_t k = 0; k < a.columns; ++k) sum += a.row(i)[k] * b.row(k)[j];
            c.row(i)[j] = sum;
        }
}

/// y(j) += the sum over k < depth of factors[k] rows[k](j), one k after the other.
template <std::size_t depth>
SPIKED_ORDERED void add_rows(const double* const* rows, const double* factors, std::size_t first, std::size_t end,
                             double* y) {
    std::size_t j = first;
    for (; j + quad_lanes <= end; j += quad_lanes) {
        Quad sum;
        load(sum, y + j);
        for (std::size_t k = 0; k < depth; ++k) {
            Quad row;
            load(row, rows[k] + j);
            sum += factors[k] * row;
        }
        store(y + j, sum);
    }
    for (; j < end; ++j)
        for (std::size_t k = 0; k < depth; ++k) y[j] += factors[k] * rows[k][j];
}

SPIKED_ORDERED void outer_products(RowMatrix& sums, const RowMatrix& x, const RowMatrix& y) {
    constexpr std::size_t depth = 8;
    std::size_t t = 0;
    for (; t + depth <= x.rows; t += depth) {
        const double* rows[depth];
        for (std::size_t k = 0; k < depth; ++k) rows[k] = y.row(t + k);
        for (std::size_t i = 0; i < x.columns; ++i) {
            double factors[depth];
            for (std::size_t k = 0; k < depth; ++k) factors[k] = x.row(t + k)[i];
            add_rows<depth>(rows, factors, 0, y.columns, sums.row(i));
        }
    }
    for (; t < x.rows; ++t) {
        const double* row = y.row(t);
        for (std::size_t i = 0; i < x.columns; ++i) add_rows<1>(&row, x.row(t) + i, 0, y.columns, sums.row(i));
    }
}

/// The row that all rotations share on their way up stays in registers.
template <std::size_t width>
SPIKED_ORDERED void rotate_strip(RowMatrix& a, std::size_t last, std::span<const RowRotation2> rotations,
                                 std::size_t j) {
    Quad lower[width];
    for (std::size_t k = 0; k < width; ++k) load(lower[k], a.row(last + 1) + j + k * quad_lanes);
    std::size_t i = last;
    for (const RowRotation2& rotation : rotations) {
        for (std::size_t k = 0; k < width; ++k) {
            Quad upper;
            load(upper, a.row(i) + j + k * quad_lanes);
            store(a.row(i + 1) + j + k * quad_lanes, rotation.sine * upper + rotation.cosine * lower[k]);
            lower[k] = rotation.cosine * upper - rotation.sine * lower[k];
        }
        --i;
    }
    for (std::size_t k = 0; k < width; ++k) store(a.row(i + 1) + j + k * quad_lanes, lower[k]);
}

SPIKED_ORDERED void rotation_kernel(RowMatrix& a, std::size_t last, std::span<const RowRotation2> rotations) {
    std::size_t j = 0;
    for (; j + 4 * quad_lanes <= a.columns; j += 4 * quad_lanes) rotate_strip<4>(a, last, rotations, j);
    for (; j + quad_lanes <= a.columns; j += quad_lanes) rotate_strip<1>(a, last, rotations, j);
    for (; j < a.columns; ++j) {
        std::size_t i = last;
        for (const RowRotation2& rotation : rotations) {
            const double upper = a.row(i)[j];
            const double lower = a.row(i + 1)[j];
            a.row(i + 1)[j] = rotation.sine * upper + rotation.cosine * lower;
            a.row(i)[j] = rotation.cosine * upper - rotation.sine * lower;
            --i;
        }
    }
}

SPIKED_ORDERED void weighted_rows(const RowMatrix& a, std::size_t first, std::size_t end, const double* x, double* y) {
    constexpr std::size_t depth = 4;
    std::size_t i = first;
    for (; i + depth <= end; i += depth) {
        const double* const rows[depth] = {a.row(i), a.row(i + 1), a.row(i + 2), a.row(i + 3)};
        add_rows<depth>(rows, x + i, first, end, y);
    }
    for (; i < end; ++i) {
        const double* row = a.row(i);
        add_rows<1>(&row, x + i, first, end, y);
    }
}

SPIKED_ORDERED void rank_two(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v) {
    for (std::size_t i = first; i < end; ++i) {
        double* row = a.row(i);
        std::size_t j = first;
        for (; j + quad_lanes <= end; j += quad_lanes) {
            Quad entries;
            Quad us;
            Quad vs;
            load(entries, row + j);
            load(us, u + j);
            load(vs, v + j);
            store(row + j, entries - (u[i] * vs + v[i] * us));
        }
        for (; j < end; ++j) row[j] -= u[i] * v[j] + v[i] * u[j];
    }
}

SPIKED_ORDERED void rank_one(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v) {
    for (std::size_t i = first; i < end; ++i) {
        double* row = a.row(i);
        std::size_t j = first;
        for (; j + quad_lanes <= end; j += quad_lanes) {
            Quad entries;
            Quad vs;
            load(entries, row + j);
            load(vs, v + j);
            store(row + j, entries - u[i] * vs);
        }
        for (; j < end; ++j) row[j] -= u[i] * v[j];
    }
}

#if defined(__x86_64__)
#define SPIKED_ORDERED_AVX2 __attribute__((target("avx2"))) void
SPIKED_ORDERED_AVX2 avx2_product_kernel(const RowMatrix& a, const RowMatrix& b, RowMatrix& c) {
    product_kernel(a, b, c);
}
SPIKED_ORDERED_AVX2 avx2_outer_products(RowMatrix& sums, const RowMatrix& x, const RowMatrix& y) {
    outer_products(sums, x, y);
}
SPIKED_ORDERED_AVX2 avx2_rotation_kernel(RowMatrix& a, std::size_t last, std::span<const RowRotation2> rotations) {
    rotation_kernel(a, last, rotations);
}
SPIKED_ORDERED_AVX2 avx2_weighted_rows(const RowMatrix& a, std::size_t first, std::size_t end, const double* x,
                                       double* y) {
    weighted_rows(a, first, end, x, y);
}
SPIKED_ORDERED_AVX2 avx2_rank_two(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v) {
    rank_two(a, first, end, u, v);
}
SPIKED_ORDERED_AVX2 avx2_rank_one(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v) {
    rank_one(a, first, end, u, v);
}
#define SPIKED_ORDERED_PATH(function, ...) processor().avx2 ? avx2_##function(__VA_ARGS__) : function(__VA_ARGS__)
#else
#define SPIKED_ORDERED_PATH(function, ...) function(__VA_ARGS__)
#endif

}  // namespace

RowMatrix ordered_product(const RowMatrix& a, const RowMatrix& b) {
    RowMatrix c(a.rows, b.columns);
    SPIKED_ORDERED_PATH(product_kernel, a, b, c);
    return c;
}

void add_outer_products(RowMatrix& sums, const RowMatrix& x, const RowMatrix& y) {
    SPIKED_ORDERED_PATH(outer_products, sums, x, y);
}

RowMatrix transposed(const RowMatrix& a) {
    RowMatrix b(a.columns, a.rows);
    for (std::size_t i = 0; i < a.rows; ++i)
        for (std::size_t j = 0; j < a.columns; ++j) b.row(j)[i] = a.row(i)[j];
    return b;
}

void rotate_rows_upwards(RowMatrix& a, std::size_t last, std::span<const RowRotation2> rotations) {
    SPIKED_ORDERED_PATH(rotation_kernel, a, last, rotations);
}

void add_weighted_rows(const RowMatrix& a, std::size_t first, std::size_t end, const double* x, double* y) {
    SPIKED_ORDERED_PATH(weighted_rows, a, first, end, x, y);
}

void subtract_outer(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v) {
    SPIKED_ORDERED_PATH(rank_one, a, first, end, u, v);
}

void subtract_symmetric(RowMatrix& a, std::size_t first, std::size_t end, const double* u, const double* v) {
    SPIKED_ORDERED_PATH(rank_two, a, first, end, u, v);
}

}  // namespace spiked::estimators
