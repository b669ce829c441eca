#pragma once
#include <armadillo>
#include <cstddef>
#include <string>
#include <vector>

#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// The spectrum of data that are known by their covariance matrix alone.
struct CovarianceSpectrum {
    std::vector<double> singular_values;  ///< of the data, min(n, p) of them, descending
    Shape shape;                          ///< n x p, without features whose covariances are all zero
    arma::uvec kept;                      ///< indices of the features in it
    std::vector<std::string> notes;
};

enum class EmptyFeatures { strip, keep };

/// The singular values sqrt(n lambda) of n x p data X with the covariance or correlation matrix X^T X / n, where lambda
/// are its eigenvalues. `samples` is n, the divisor of the covariances: with centred columns, as of R's cov and NumPy's
/// cov, the number of samples less one, which is also the rank of such data.
///
/// Throws input_error for a matrix that is not square, not symmetric (1e-8 of its largest entry), has an eigenvalue
/// below -1e-3 times its largest, or more than n eigenvalues above 0 (those beyond n add up to more than 1e-3 of the
/// trace). Smaller deviations are those of rounded tables: such eigenvalues are taken as 0, with a note where one is
/// below -1e-8 of the largest. Cost O(p^3), memory 2 p^2.
[[nodiscard]] CovarianceSpectrum covariance_spectrum(const arma::mat& covariance, std::size_t samples,
                                                     EmptyFeatures empty = EmptyFeatures::strip);

}  // namespace spiked::estimators
