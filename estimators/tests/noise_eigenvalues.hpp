#pragma once
#include <armadillo>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace spiked::estimators {

/// Eigenvalues of noise whose columns, or rows, have variances 9 exp(-decay x), x from 0 to 1.
inline std::vector<double> noise_eigenvalues(std::size_t rows, std::size_t columns, double decay, std::uint64_t draw,
                                             bool of_rows = false) {
    std::mt19937_64 random(77 + draw);
    std::normal_distribution<double> normal;
    arma::mat noise(rows, columns);
    for (std::size_t j = 0; j < columns; ++j)
        for (std::size_t i = 0; i < rows; ++i)
            noise(i, j) = 3.0 * normal(random) *
                          std::exp(-0.5 * decay * (static_cast<double>(of_rows ? i : j) + 0.5) /
                                   static_cast<double>(of_rows ? rows : columns));
    const arma::vec singular = arma::svd(noise);
    std::vector<double> values;
    for (const double s : singular) values.push_back(s * s);
    return values;
}

}  // namespace spiked::estimators
