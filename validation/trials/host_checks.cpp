#include "validation/trials/host_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimators/svd/decomposition.hpp"
#include "sim/random/normal.hpp"

namespace spiked::validation {
namespace {

arma::mat gaussian_matrix(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat matrix(rows, columns);
    stream::fill_normal(stream::Stream(stream::StudySeed{}, "doctor", stream::Role::noise, replicate),
                        {matrix.memptr(), matrix.n_elem});
    return matrix;
}

}  // namespace

ParityCheck check_product(const std::function<arma::mat(const arma::mat&, const arma::mat&)>& product) {
    const arma::mat a = gaussian_matrix(131, 257, 0);
    const arma::mat b = gaussian_matrix(257, 67, 1);
    const arma::mat fast = product(a, b);
    double worst = 0.0;
    for (arma::uword j = 0; j < b.n_cols; ++j)
        for (arma::uword i = 0; i < a.n_rows; ++i) {
            double sum = 0.0;
            for (arma::uword k = 0; k < a.n_cols; ++k) sum += a(i, k) * b(k, j);
            worst = std::max(worst, std::abs(sum - fast(i, j)));
        }
    return {"matrix product", worst < 1e-11,
            fmt::format("131 x 257 x 67 differs from plain loops by at most {:.1e} (allowed 1e-11)", worst)};
}

ParityCheck check_decomposition() {
    const arma::mat a = gaussian_matrix(96, 64, 2);
    const auto values = estimators::singular_values(a);
    const auto vectors = estimators::leading_vectors(a, 64);
    const arma::mat back = vectors.left * arma::diagmat(arma::vec(values)) * vectors.right.t();
    const double worst = arma::abs(back - a).max();
    return {
        "decomposition", worst < 1e-12,
        fmt::format("96 x 64 comes back from its singular values and vectors within {:.1e} (allowed 1e-12)", worst)};
}

}  // namespace spiked::validation
