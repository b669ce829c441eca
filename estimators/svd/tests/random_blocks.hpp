#pragma once
#include <fmt/format.h>

#include <armadillo>
#include <cmath>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "estimators/svd/decomposition.hpp"
#include "estimators/svd/shape.hpp"
#include "sim/random/normal.hpp"

/// Random blocks of every kind for the tests of decompositions, and the errors of their values and vectors.
namespace spiked::estimators::random_blocks {

using Random = std::mt19937_64;

inline std::size_t any_of(Random& random, std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
}

inline arma::mat random_gaussian(Random& random, std::size_t rows, std::size_t columns) {
    arma::mat matrix(rows, columns);
    const stream::Stream entries({}, "batch decomposition", stream::Role::noise, random());
    stream::fill_normal(entries, std::span<double>(matrix.memptr(), matrix.n_elem));
    return matrix;
}

inline arma::mat orthonormal(Random& random, std::size_t rows, std::size_t columns) {
    arma::mat q;
    arma::mat r;
    arma::qr_econ(q, r, random_gaussian(random, rows, columns));
    return q;
}

inline arma::mat with_spectrum(Random& random, std::size_t rows, std::size_t columns, const arma::vec& spectrum) {
    return orthonormal(random, rows, spectrum.n_elem) * arma::diagmat(spectrum) *
           orthonormal(random, columns, spectrum.n_elem).t();
}

using Make = arma::mat (*)(Random&, std::size_t rows, std::size_t columns);

/// The kinds of blocks in the tests.
inline const std::pair<const char*, Make> kinds[] = {
    {"gaussian", [](Random& random, std::size_t n, std::size_t d) { return random_gaussian(random, n, d); }},
    {"spiked",
     [](Random& random, std::size_t n, std::size_t d) {
         const std::size_t rank = std::min<std::size_t>({3, n, d});
         const arma::vec strengths(rank, arma::fill::value(100.0));
         return arma::mat(random_gaussian(random, n, d) / std::sqrt(static_cast<double>(d)) +
                          with_spectrum(random, n, d, strengths));
     }},
    {"geometric",
     [](Random& random, std::size_t n, std::size_t d) {
         const double ratio = std::pow(10.0, -0.1 * static_cast<double>(any_of(random, 1, 30)));
         arma::vec spectrum(std::min(n, d));
         for (arma::uword i = 0; i < spectrum.n_elem; ++i) spectrum(i) = std::pow(ratio, i);
         return with_spectrum(random, n, d, spectrum);
     }},
    {"clustered",
     [](Random& random, std::size_t n, std::size_t d) {
         const double gap = std::pow(10.0, -static_cast<double>(any_of(random, 3, 17)));
         arma::vec spectrum(std::min(n, d));
         for (arma::uword i = 0; i < spectrum.n_elem; ++i)
             spectrum(i) = (i % 3 == 0 ? 1.0 : 0.5) + gap * static_cast<double>(i);
         return with_spectrum(random, n, d, spectrum);
     }},
    {"orthogonal",
     [](Random& random, std::size_t n, std::size_t d) {
         return with_spectrum(random, n, d, arma::vec(std::min(n, d), arma::fill::ones));
     }},
    {"low rank",
     [](Random& random, std::size_t n, std::size_t d) {
         const std::size_t rank = any_of(random, 1, std::min(n, d));
         return arma::mat(random_gaussian(random, n, rank) * random_gaussian(random, rank, d));
     }},
    {"small integers of low rank",
     [](Random& random, std::size_t n, std::size_t d) {
         const std::size_t rank = any_of(random, 1, std::min<std::size_t>({n, d, 4}));
         return arma::mat(arma::round(random_gaussian(random, n, rank)) *
                          arma::round(random_gaussian(random, rank, d)));
     }},
    {"diagonal",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block(n, d);
         block.diag() = arma::round(2.0 * random_gaussian(random, std::min(n, d), 1));
         return block;
     }},
    {"bidiagonal that splits",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block(n, d);
         block.diag() = random_gaussian(random, std::min(n, d), 1);
         for (arma::uword i = 0; i + 1 < std::min(n, d); ++i) block(i, i + 1) = i % 3 == 0 ? 0.0 : 1.0;
         return block;
     }},
    {"equal blocks on the diagonal",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block(n, d);
         const arma::mat part = random_gaussian(random, 2, 2);
         for (arma::uword i = 0; i + 2 <= std::min(n, d); i += 2) block.submat(i, i, i + 1, i + 1) = part;
         return block;
     }},
    {"one hidden small value",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::vec spectrum(std::min(n, d), arma::fill::ones);
         for (arma::uword i = 0; i < spectrum.n_elem; ++i) spectrum(i) += 0.1 * static_cast<double>(i);
         spectrum(spectrum.n_elem - 1) = 1e-9;
         return with_spectrum(random, n, d, spectrum);
     }},
    {"zero rows and columns",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block = random_gaussian(random, n, d);
         for (arma::uword i = 0; i < n; ++i)
             if (any_of(random, 0, 2) == 0) block.row(i).zeros();
         block.col(any_of(random, 0, d - 1)).zeros();
         return block;
     }},
    {"ones", [](Random&, std::size_t n, std::size_t d) { return arma::mat(n, d, arma::fill::ones); }},
    {"zero", [](Random&, std::size_t n, std::size_t d) { return arma::mat(n, d); }},
};

/// Largest errors, relative to the largest singular value where they have a scale.
struct Errors {
    double values = 0.0;          ///< over the short side
    double leading_values = 0.0;  ///< relative, of the first 16 values above a fourth of the first one
    double orthogonality = 0.0;
    double residual = 0.0;

    void widen(const Errors& other) {
        values = std::max(values, other.values);
        leading_values = std::max(leading_values, other.leading_values);
        orthogonality = std::max(orthogonality, other.orthogonality);
        residual = std::max(residual, other.residual);
    }
};

inline Errors value_errors(std::span<const double> values, const std::vector<double>& expected) {
    Errors errors;
    const double scale = expected[0] == 0.0 ? 1.0 : expected[0];
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double error = std::abs(values[i] - expected[i]);
        errors.values = std::max(errors.values, error / scale);
        if (i < 16 && expected[i] > 0.25 * expected[0])
            errors.leading_values = std::max(errors.leading_values, error / expected[i]);
        if (!(values[i] >= 0.0) || (i > 0 && values[i] > values[i - 1])) errors.values = INFINITY;
    }
    return errors;
}

inline Errors vector_errors(const arma::mat& block, std::span<const double> values, const arma::mat& left,
                            const arma::mat& right) {
    Errors errors;
    if (left.n_cols == 0) return errors;
    const double scale = values[0] == 0.0 ? 1.0 : values[0];
    const arma::mat identity(left.n_cols, left.n_cols, arma::fill::eye);
    errors.orthogonality =
        std::max(arma::abs(left.t() * left - identity).max(), arma::abs(right.t() * right - identity).max());
    const arma::rowvec s(const_cast<double*>(values.data()), left.n_cols, false);
    const arma::mat missing_left = block * right - left.each_row() % s;
    const arma::mat missing_right = block.t() * left - right.each_row() % s;
    errors.residual = std::max(std::sqrt(arma::sum(arma::square(missing_left / scale), 0).max()),
                               std::sqrt(arma::sum(arma::square(missing_right / scale), 0).max()));
    if (!std::isfinite(arma::accu(left) + arma::accu(right))) errors.residual = INFINITY;
    return errors;
}

/// The bounds of batch_decomposition.hpp.
template <class Real>
Errors bounds(Shape shape) {
    if (sizeof(Real) == 4) return {1e-6 + 4e-9 * static_cast<double>(shape.long_side()), 1e-6, 5e-6, 5e-6};
    return {1e-12 * static_cast<double>(shape.short_side()), 1e-12, 1e-12, 1e-12};
}

inline bool within(const Errors& errors, const Errors& limits) {
    return errors.values <= limits.values && errors.leading_values <= limits.leading_values &&
           errors.orthogonality <= limits.orthogonality && errors.residual <= limits.residual;
}

inline std::string text(const Errors& errors) {
    return fmt::format("values {:.1e}, leading values {:.1e}, orthogonality {:.1e}, residual {:.1e}", errors.values,
                       errors.leading_values, errors.orthogonality, errors.residual);
}

template <class Real>
std::vector<Real> side_by_side(const std::vector<arma::mat>& blocks) {
    std::vector<Real> entries;
    for (const arma::mat& block : blocks)
        for (const double x : block) entries.push_back(static_cast<Real>(x));
    return entries;
}

struct Batch {
    std::vector<arma::mat> blocks;
    std::vector<std::vector<double>> expected;
    std::vector<const char*> kinds;
    std::size_t wanted = 0;
};

/// Largest errors for each kind of block.
using Found = std::map<std::string, Errors>;

/// Blocks of random kinds. Entries are rounded to float, so that both precisions decompose the same block.
inline Batch random_batch(Random& random, Shape shape, std::size_t count, std::size_t wanted) {
    Batch batch;
    batch.wanted = wanted;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& [name, make] = kinds[any_of(random, 0, std::size(kinds) - 1)];
        const arma::mat block = make(random, shape.rows, shape.columns);
        batch.kinds.push_back(name);
        batch.blocks.push_back(arma::conv_to<arma::mat>::from(arma::conv_to<arma::fmat>::from(block)));
        batch.expected.push_back(singular_values(batch.blocks.back()));
    }
    return batch;
}

template <class Real>
void report(const char* precision, const Found& found) {
    for (const auto& [kind, errors] : found) std::cout << precision << ", " << kind << ": " << text(errors) << '\n';
}

}  // namespace spiked::estimators::random_blocks
