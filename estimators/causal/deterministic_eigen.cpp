#include "estimators/causal/deterministic_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

/// A tridiagonal matrix; below[i] is the entry (i + 1, i).
struct Tridiagonal {
    std::vector<double> diagonal;
    std::vector<double> below;
};

/// Scales to a largest absolute entry in [1/2, 1); returns the exponent of the scale.
int normalise(RowMatrix& a) {
    double largest = 0.0;
    for (const double entry : a.entries) {
        if (!std::isfinite(entry))
            throw input_error("the covariance of decoded rows is not finite (its entries overflow): scale the data");
        largest = std::max(largest, std::abs(entry));
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    // Smaller than the normal numbers: such a matrix is treated as it is.
    if (largest < 0x1p-900) return 0;
    const double scale = std::ldexp(1.0, -exponent);
    for (double& entry : a.entries) entry *= scale;
    return exponent;
}

/// The reflection I - weight v v' that maps a vector to a multiple of its first entry's axis.
struct Reflection {
    double weight = 0.0;
    double image = 0.0;
};

/// Replaces x, of entries first to end, by v with v(first) = 1.
Reflection reflect(double* x, std::size_t first, std::size_t end) {
    double rest = 0.0;
    for (std::size_t i = first + 1; i < end; ++i) rest += x[i] * x[i];
    const double head = x[first];
    x[first] = 1.0;
    if (rest == 0.0) return {0.0, head};
    const double norm = std::sqrt(head * head + rest);
    const double image = head > 0.0 ? -norm : norm;
    const double pivot = head - image;
    for (std::size_t i = first + 1; i < end; ++i) x[i] /= pivot;
    return {-pivot / image, image};
}

/// Reduces `a`; row k of it then holds the vector v of reflection k, whose weights are returned.
Tridiagonal tridiagonalise(RowMatrix& a, std::vector<double>& weights) {
    const std::size_t m = a.rows;
    Tridiagonal reduced{std::vector<double>(m), std::vector<double>(m)};
    weights.assign(m, 0.0);
    std::vector<double> product(m);
    for (std::size_t k = 0; k + 1 < m; ++k) {
        double* v = a.row(k);
        reduced.diagonal[k] = v[k];
        const Reflection reflection = reflect(v, k + 1, m);
        reduced.below[k] = reflection.image;
        weights[k] = reflection.weight;
        if (reflection.weight == 0.0) continue;
        std::fill(product.begin(), product.end(), 0.0);
        add_weighted_rows(a, k + 1, m, v, product.data());
        double across = 0.0;
        for (std::size_t i = k + 1; i < m; ++i) {
            product[i] *= reflection.weight;
            across += product[i] * v[i];
        }
        across *= 0.5 * reflection.weight;
        for (std::size_t i = k + 1; i < m; ++i) product[i] -= across * v[i];
        subtract_symmetric(a, k + 1, m, v, product.data());
    }
    if (m > 0) reduced.diagonal[m - 1] = a.row(m - 1)[m - 1];
    return reduced;
}

/// The transposed product of all reflections: row k is column k of the basis in which the matrix is tridiagonal.
RowMatrix reflected_basis(const RowMatrix& reduced, const std::vector<double>& weights) {
    const std::size_t m = reduced.rows;
    RowMatrix basis(m, m);
    for (std::size_t i = 0; i < m; ++i) basis.row(i)[i] = 1.0;
    std::vector<double> across(m);
    std::vector<double> weighted(m);
    // From the last reflection to the first, each of which changes only rows and columns beyond its own.
    for (std::size_t k = m; k-- > 0;) {
        if (weights[k] == 0.0) continue;
        const double* v = reduced.row(k);
        std::fill(across.begin(), across.end(), 0.0);
        add_weighted_rows(basis, k + 1, m, v, across.data());
        for (std::size_t i = k + 1; i < m; ++i) weighted[i] = weights[k] * v[i];
        subtract_outer(basis, k + 1, m, weighted.data(), across.data());
    }
    return transposed(basis);
}

/// One QL sweep on the unreduced part first to last; the rotations are in the order in which they act.
void ql_sweep(Tridiagonal& t, std::size_t first, std::size_t last, std::vector<RowRotation2>& rotations) {
    std::vector<double>& d = t.diagonal;
    std::vector<double>& e = t.below;
    rotations.clear();
    const double half_gap = (d[first + 1] - d[first]) / (2.0 * e[first]);
    const double root = std::sqrt(half_gap * half_gap + 1.0);
    double g = d[last] - d[first] + e[first] / (half_gap + (half_gap >= 0.0 ? root : -root));
    double sine = 1.0;
    double cosine = 1.0;
    double shift = 0.0;
    for (std::size_t i = last; i-- > first;) {
        const double f = sine * e[i];
        const double b = cosine * e[i];
        const double r = std::sqrt(f * f + g * g);
        e[i + 1] = r;
        if (r == 0.0) {
            // The part falls into two.
            d[i + 1] -= shift;
            e[last] = 0.0;
            return;
        }
        sine = f / r;
        cosine = g / r;
        g = d[i + 1] - shift;
        const double rotated = (d[i] - g) * sine + 2.0 * cosine * b;
        shift = sine * rotated;
        d[i + 1] = g + shift;
        g = cosine * rotated - b;
        rotations.push_back({cosine, sine});
    }
    d[first] -= shift;
    e[first] = g;
    e[last] = 0.0;
}

void diagonalise(Tridiagonal& t, RowMatrix& basis) {
    constexpr int most_sweeps = 60;
    const std::size_t m = t.diagonal.size();
    // Entries that are negligible beside the whole matrix are treated as zero: those of its null space are noise.
    double norm = 0.0;
    for (std::size_t i = 0; i < m; ++i) norm = std::max(norm, std::abs(t.diagonal[i]) + std::abs(t.below[i]));
    const double negligible = 0x1p-55 * norm;
    std::vector<RowRotation2> rotations;
    for (std::size_t first = 0; first < m; ++first) {
        for (int sweeps = 0;; ++sweeps) {
            std::size_t last = first;
            for (; last + 1 < m; ++last) {
                const double size = std::abs(t.diagonal[last]) + std::abs(t.diagonal[last + 1]);
                if (std::abs(t.below[last]) <= std::max(0x1p-52 * size, negligible)) break;
            }
            if (last == first) break;
            if (sweeps == most_sweeps)
                throw input_error("eigenvalue {} of {} did not converge: the data is damaged", first, m);
            ql_sweep(t, first, last, rotations);
            if (!rotations.empty()) rotate_rows_upwards(basis, last - 1, rotations);
        }
    }
}

}  // namespace

SymmetricEigen deterministic_eigen(RowMatrix symmetric) {
    const std::size_t m = symmetric.rows;
    const int exponent = normalise(symmetric);
    std::vector<double> weights;
    Tridiagonal reduced = tridiagonalise(symmetric, weights);
    RowMatrix basis = reflected_basis(symmetric, weights);
    diagonalise(reduced, basis);

    std::vector<std::size_t> order(m);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return reduced.diagonal[a] > reduced.diagonal[b]; });
    SymmetricEigen eigen{std::vector<double>(m), RowMatrix(m, m)};
    for (std::size_t k = 0; k < m; ++k) {
        eigen.values[k] = std::ldexp(reduced.diagonal[order[k]], exponent);
        const double* from = basis.row(order[k]);
        std::size_t peak = 0;
        for (std::size_t j = 1; j < m; ++j)
            if (std::abs(from[j]) > std::abs(from[peak])) peak = j;
        const double sign = from[peak] < 0.0 ? -1.0 : 1.0;
        for (std::size_t j = 0; j < m; ++j) eigen.vectors.row(k)[j] = sign * from[j];
    }
    return eigen;
}

}  // namespace spiked::estimators
