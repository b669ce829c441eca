#pragma once
#include <armadillo>
#include <span>
#include <vector>

#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/shape.hpp"

// The statistics of the tests of block_adequacy, which are computed alike for observed and for drawn blocks.
namespace spiked::validation {

/// The analysis of a block, observed or drawn, that needs only its singular values (descending): eOptShrink with the
/// rank of its edge fit, and what it leaves.
struct BlockSpectrum {
    estimators::Shrinkage shrinkage;
    std::vector<double> eigenvalues;  ///< of the block, descending
    std::vector<double> residual;     ///< eigenvalues of the block minus its estimate, descending
};

[[nodiscard]] BlockSpectrum analyse_spectrum(std::span<const double> values, estimators::Shape shape);

struct EdgeShape {
    double power_advantage = 0.0;
    double exponent = 0.0;
};

/// Compares two fits to the largest noise eigenvalues: E - C (j - 1/2)^(2/3), where j counts from the first eigenvalue
/// after the rank, and C j^-a, where j counts from the first eigenvalue of the block. Uses relative residual sums over
/// the eigenvalues of the edge fit.
[[nodiscard]] EdgeShape edge_shape_of(std::span<const double> eigenvalues, std::size_t rank);

/// The maximum over rows t of max_j |r_tj| / ||r_t||.
[[nodiscard]] double peak_of(const arma::mat& rows);

/// The number of vectors at the edge of the noise: the square root of the shorter side.
[[nodiscard]] std::size_t edge_vectors(estimators::Shape shape);
/// The largest squared coordinate of the vectors from `first` on, of both sides, in units of log(size) / size.
[[nodiscard]] double vector_peak(const arma::mat& left, const arma::mat& right, std::size_t first);

/// How far the residual of a block is from the residuals of other blocks: the absolute logarithm of its largest
/// eigenvalue over the mean of theirs, and the Kolmogorov distance from all their eigenvalues.
struct DistanceFromOthers {
    double top = 0.0;
    double spectrum = 0.0;
};

/// The lists hold the eigenvalues of residuals in descending order.
[[nodiscard]] DistanceFromOthers distance_from_others(const std::vector<double>& residual,
                                                      const std::vector<const std::vector<double>*>& others);

}  // namespace spiked::validation
