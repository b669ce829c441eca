#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/registry.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "theory/laws/shrinkers.hpp"
#include "theory/laws/spectrum.hpp"

namespace spiked::estimators {

/// A spectral estimator is a function of numbers: it never sees the matrix, so one decomposition serves every method.
struct SpectralEstimator {
    std::string name;  ///< as typed
    std::function<Shrinkage(std::span<const double> singular_values, Shape shape)> estimate;
    std::size_t least_side = 0;  ///< shorter side of the smallest block that has room for a rank told in the name
    bool keeps_values = false;   ///< what it keeps stays as it is, whatever the loss
};

/// What is known of the noise law beforehand; only oracles ask. Entries of X have variance 1/d.
struct KnownLaw {
    std::optional<theory::Spectrum> row;
    std::optional<theory::Spectrum> column;

    [[nodiscard]] bool empty() const { return !row && !column; }
};

/// An entry of `spiked list estimators`.
struct EstimatorEntry : RegistryEntry {
    bool takes_noise_law = false;  ///< whether what is told of the noise changes its answer
    std::string argument = {};     ///< what must follow its name, as an example: 1 of svd:1
    bool keeps_values = false;     ///< as its estimators say

    /// A name that can be typed as it stands.
    [[nodiscard]] std::string example() const { return argument.empty() ? name : name + ":" + argument; }
};

[[nodiscard]] const std::vector<EstimatorEntry>& spectral_estimators();

/// Builds an estimator from its name with options, e.g. `eoptshrink:margin=0` or `svd:1`. Throws usage_error naming the
/// nearest legal name or option. What it returns throws bug and input_error on singular values that are none (see
/// RelativeSpectrum), and answers rank 0 with a note on a zero block.
[[nodiscard]] SpectralEstimator spectral_estimator(std::string_view name, theory::Loss loss = theory::Loss::frobenius,
                                                   const KnownLaw& known = {});

}  // namespace spiked::estimators
