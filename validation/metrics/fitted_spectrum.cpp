#include "validation/metrics/fitted_spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace spiked::validation {

FittedSpectrum fit_spectrum(std::vector<double> singular_values, std::optional<Eigenvalue> bulk_edge,
                            std::vector<double> noise_eigenvalues, std::size_t long_side) {
    FittedSpectrum found{.singular_values = std::move(singular_values),
                         .bulk_edge = bulk_edge,
                         .noise_eigenvalues = std::move(noise_eigenvalues),
                         .long_side = long_side};
    auto& values = found.singular_values;
    auto& noise = found.noise_eigenvalues;
    found.signal = values.size() - std::min(values.size(), noise.size());
    const auto finite = [](double value) { return std::isfinite(value); };
    if (!std::all_of(values.begin(), values.end(), finite) || !std::all_of(noise.begin(), noise.end(), finite))
        return found;
    std::sort(values.begin(), values.end(), std::greater<>());
    std::sort(noise.begin(), noise.end(), std::greater<>());
    found.noise = estimators::fit_noise(noise, long_side - std::min(long_side, found.signal));
    return found;
}

}  // namespace spiked::validation
