#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/shrinkage.hpp"
#include "theory/shrinkers.hpp"

namespace spiked::estimators {

/// A spectral estimator is a function of numbers: it never sees the matrix, so one decomposition serves every method.
struct SpectralEstimator {
    std::string name;  ///< as typed
    std::function<Shrinkage(std::span<const double> singular_values, Shape shape)> estimate;
};

/// One line of `spiked list estimators`.
struct EstimatorEntry {
    std::string name;
    std::string summary;
    std::vector<std::string> options;
    std::string source;
};

[[nodiscard]] const std::vector<EstimatorEntry>& spectral_estimators();

/// Builds an estimator from its name with options, e.g. `eoptshrink:margin=0` or `svd:1`. Throws usage_error naming the
/// nearest legal name or option.
[[nodiscard]] SpectralEstimator spectral_estimator(std::string_view name, theory::Loss loss = theory::Loss::frobenius);

}  // namespace spiked::estimators
