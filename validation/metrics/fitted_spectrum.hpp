#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "estimators/spectral/fitted_noise.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::validation {

/// The spectrum of a block and what an estimator found in it, as the figure of a spectrum shows them.
struct FittedSpectrum {
    std::vector<double> singular_values;    ///< descending
    std::optional<Eigenvalue> bulk_edge;    ///< estimated; no value: not estimated
    std::vector<double> noise_eigenvalues;  ///< those that the estimator attributes to noise, descending
    std::size_t long_side = 0;              ///< the larger size of the block
    std::size_t signal = 0;                 ///< number of singular values that are not of the noise
    /// The law fitted to the noise eigenvalues; no value if there are fewer than 8 above zero, or if a value of the
    /// spectrum is not finite.
    std::optional<estimators::FittedNoise> noise;
};

/// Sorts the values and fits the noise law. `noise_eigenvalues` is empty where no estimator separated them. Values that
/// are not finite are kept, in their order. Cost: that of estimators::fit_noise, 50 ms.
[[nodiscard]] FittedSpectrum fit_spectrum(std::vector<double> singular_values, std::optional<Eigenvalue> bulk_edge,
                                          std::vector<double> noise_eigenvalues, std::size_t long_side);

}  // namespace spiked::validation
