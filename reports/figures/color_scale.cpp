#include "reports/figures/color_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace spiked::reports {
namespace {

Color between(std::span<const Color> anchors, double position) {
    const double at = std::clamp(position, 0.0, 1.0) * static_cast<double>(anchors.size() - 1);
    const auto left = std::min(static_cast<std::size_t>(at), anchors.size() - 2);
    const double weight = at - static_cast<double>(left);
    const auto mix = [&](std::uint8_t a, std::uint8_t b) {
        return static_cast<std::uint8_t>(std::lround(a + weight * (static_cast<double>(b) - static_cast<double>(a))));
    };
    const Color& a = anchors[left];
    const Color& b = anchors[left + 1];
    return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace

Color diverging_color(double position) {
    static constexpr std::array<Color, 5> anchors = {
        {{0, 52, 96}, {60, 140, 200}, {247, 247, 247}, {230, 130, 60}, {122, 40, 0}}};
    return between(anchors, 0.5 + 0.5 * position);
}

Color sequential_color(double position) {
    static constexpr std::array<Color, 4> anchors = {{{238, 244, 250}, {158, 200, 225}, {49, 130, 189}, {8, 48, 107}}};
    return between(anchors, position);
}

arma::mat downsampled(const arma::mat& matrix, std::size_t largest) {
    const arma::uword rows = std::min<arma::uword>(matrix.n_rows, largest);
    const arma::uword columns = std::min<arma::uword>(matrix.n_cols, largest);
    if (rows == matrix.n_rows && columns == matrix.n_cols) return matrix;
    arma::mat out(rows, columns);
    for (arma::uword c = 0; c < columns; ++c)
        for (arma::uword r = 0; r < rows; ++r)
            out(r, c) = arma::mean(arma::vectorise(matrix.submat(r * matrix.n_rows / rows, c * matrix.n_cols / columns,
                                                                 (r + 1) * matrix.n_rows / rows - 1,
                                                                 (c + 1) * matrix.n_cols / columns - 1)));
    return out;
}

}  // namespace spiked::reports
