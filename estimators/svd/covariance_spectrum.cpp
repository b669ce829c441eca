#include "estimators/svd/covariance_spectrum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

void require_symmetric(const arma::mat& covariance) {
    if (covariance.n_rows != covariance.n_cols)
        throw input_error(
            "a matrix of {} x {} is no covariance matrix (it is not square): leave --covariance out, or give the "
            "covariances of all features",
            covariance.n_rows, covariance.n_cols);
    const double rounding = 1e-8 * arma::abs(covariance).max();
    for (arma::uword i = 0; i < covariance.n_rows; ++i)
        for (arma::uword j = i + 1; j < covariance.n_cols; ++j)
            if (!(std::abs(covariance(i, j) - covariance(j, i)) <= rounding))
                throw input_error(
                    "a covariance matrix is symmetric (row {0}, column {1} is {2:.6g}, row {1}, column {0} is {3:.6g}, "
                    "counted from 0): leave --covariance out, or give both triangles",
                    i, j, covariance(i, j), covariance(j, i));
}

/// Descending eigenvalues, those below zero by rounding set to 0.
arma::vec eigenvalues_of(const arma::mat& covariance, std::vector<std::string>& notes) {
    arma::vec values;
    if (!arma::eig_sym(values, arma::symmatu(covariance)))
        throw input_error("the eigenvalues of the covariance matrix are not found (LAPACK did not converge): check it");
    values = arma::reverse(values);
    const double largest = values.front();
    const double smallest = values.back();
    if (smallest < -1e-3 * std::max(largest, 0.0) || (largest <= 0.0 && smallest < 0.0))
        throw input_error(
            "a covariance matrix has no negative eigenvalues (the smallest is {:.6g}, the largest {:.6g}; covariances "
            "from pairs of incomplete samples can have them): compute it from complete samples",
            smallest, largest);
    if (smallest < -1e-8 * largest)
        notes.push_back(fmt::format("{} negative eigenvalues of the covariance matrix, down to {:.3g}, are taken as 0",
                                    std::count_if(values.begin(), values.end(), [](double x) { return x < 0.0; }),
                                    smallest));
    return arma::clamp(values, 0.0, std::max(largest, 0.0));
}

}  // namespace

CovarianceSpectrum covariance_spectrum(const arma::mat& covariance, std::size_t samples, EmptyFeatures empty) {
    require_symmetric(covariance);
    CovarianceSpectrum found;
    arma::uvec& kept = found.kept;
    kept = arma::regspace<arma::uvec>(0, covariance.n_rows - 1);
    if (empty == EmptyFeatures::strip) kept = arma::find(arma::any(covariance != 0.0, 1));
    found.shape = {samples, kept.n_elem};
    if (kept.is_empty()) return found;
    const arma::vec values = eigenvalues_of(covariance.submat(kept, kept), found.notes);
    const double trace = arma::accu(values);
    const std::size_t rank = std::min<std::size_t>(samples, values.n_elem);
    if (rank < values.n_elem && arma::accu(values.tail(values.n_elem - rank)) > 1e-3 * trace)
        throw input_error(
            "{} samples have a covariance matrix of at most as many eigenvalues above 0 (here those beyond hold {:.3g} "
            "% of their sum): correct --covariance",
            samples, 100.0 * arma::accu(values.tail(values.n_elem - rank)) / trace);
    const double root = std::sqrt(static_cast<double>(samples));
    for (std::size_t i = 0; i < rank; ++i) found.singular_values.push_back(root * std::sqrt(values[i]));
    return found;
}

}  // namespace spiked::estimators
