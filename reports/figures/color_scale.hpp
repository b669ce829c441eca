#pragma once
#include <armadillo>
#include <cstdint>

namespace spiked::reports {

struct Color {
    std::uint8_t red = 0, green = 0, blue = 0;
};

/// Maps -1 ... 1 to blue, near-white, vermillion, which are distinguishable with any colour vision.
[[nodiscard]] Color diverging_color(double position);
/// Maps 0 ... 1 from light to dark blue.
[[nodiscard]] Color sequential_color(double position);

/// The means over rectangles, so that neither side is longer than `largest`, or the matrix itself when it is small
/// enough.
[[nodiscard]] arma::mat downsampled(const arma::mat& matrix, std::size_t largest);

}  // namespace spiked::reports
