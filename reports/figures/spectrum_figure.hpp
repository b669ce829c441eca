#pragma once
#include <string>

#include "reports/figures/figures.hpp"
#include "validation/metrics/fitted_spectrum.hpp"

namespace spiked::reports {

/// The spectrum of one block: singular values by index, and a histogram of eigenvalues (their squares) with the
/// estimated edge and the density of the fitted noise law, where the spectrum has them. A spectrum without a value
/// above 0, or whose values or their squares are not finite, gives a figure without data. Draw the result with draw or
/// write_picture.
[[nodiscard]] Figure spectrum_figure(const std::string& title, const validation::FittedSpectrum& of);

}  // namespace spiked::reports
