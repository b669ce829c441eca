#pragma once
#include <armadillo>
#include <cstdint>

namespace spiked::reports {

struct Color {
    std::uint8_t red = 0, green = 0, blue = 0;
};

/// -1 ... 1: blue over near-white to vermillion, told apart by every kind of colour vision.
[[nodiscard]] Color diverging_color(double position);
/// 0 ... 1: light to dark blue.
[[nodiscard]] Color sequential_color(double position);

/// Means over rectangles, so that neither side is longer than `largest`; the matrix itself when it is small enough.
[[nodiscard]] arma::mat shrunk_to(const arma::mat& matrix, std::size_t largest);

}  // namespace spiked::reports
