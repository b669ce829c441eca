#pragma once
#include <armadillo>
#include <cstdint>
#include <vector>

namespace spiked::reports {

struct Color {
    std::uint8_t red = 0, green = 0, blue = 0;
};

/// -1 ... 1: blue over near-white to vermillion, told apart by every kind of colour vision.
[[nodiscard]] Color diverging_color(double position);
/// 0 ... 1: light to dark blue.
[[nodiscard]] Color sequential_color(double position);

/// A picture of a matrix, one pixel an entry, row 0 on top, values of +-limit at the ends of the diverging scale and
/// what lies beyond in their colour; NaN is grey. Uncompressed inside, so that its bytes depend on no library.
[[nodiscard]] std::vector<std::uint8_t> matrix_png(const arma::mat& matrix, double limit);

/// The scale itself as a strip of 256 x 1 pixels.
[[nodiscard]] std::vector<std::uint8_t> scale_png(Color (*color)(double), double low, double high);

/// Means over rectangles, so that neither side is longer than `largest`; the matrix itself when it is small enough.
[[nodiscard]] arma::mat shrunk_to(const arma::mat& matrix, std::size_t largest);

}  // namespace spiked::reports
