#include "sim/kv/rope.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"

namespace spiked::sim {
namespace {

enum class Direction { apply, undo };

std::pair<std::size_t, std::size_t> coordinates(RopeStyle style, std::size_t pair, std::size_t dim) {
    if (style == RopeStyle::interleaved) return {2 * pair, 2 * pair + 1};
    return {pair, pair + dim / 2};
}

void require_usable(const arma::mat& block, const Rope& rope, std::span<const double> positions) {
    if (block.n_cols % 2 != 0)
        throw usage_error(
            "a rotary embedding of {} columns is not possible (coordinates are rotated in pairs): give an even "
            "number",
            block.n_cols);
    if (!(rope.base > 1.0) || !std::isfinite(rope.base))
        throw usage_error("rotary base {} is not usable (it must be a number above 1): give for example 10000",
                          rope.base);
    if (positions.size() != block.n_rows)
        throw usage_error("{} positions for {} tokens: give one for each", positions.size(), block.n_rows);
    if (!std::all_of(positions.begin(), positions.end(), [](double p) { return std::isfinite(p); }))
        throw usage_error("a position of the rotary embedding is not a finite number: correct it");
}

/// The angle of a pair per position.
double frequency_of(const Rope& rope, std::size_t pair, std::size_t dim) {
    if (rope.scaling) return scaled_frequency(*rope.scaling, rope.base, pair, dim);
    return std::pow(rope.base, -2.0 * static_cast<double>(pair) / static_cast<double>(dim));
}

arma::mat rotated(const arma::mat& block, const Rope& rope, std::span<const double> positions, Direction direction) {
    require_usable(block, rope, positions);
    const std::size_t dim = block.n_cols;
    arma::mat result(block.n_rows, dim, arma::fill::none);
    for (std::size_t pair = 0; pair < dim / 2; ++pair) {
        const double frequency = frequency_of(rope, pair, dim);
        const auto [first, second] = coordinates(rope.style, pair, dim);
        for (std::size_t t = 0; t < block.n_rows; ++t) {
            const double angle = positions[t] * frequency;
            const double cosine = std::cos(angle);
            const double sine = direction == Direction::apply ? std::sin(angle) : -std::sin(angle);
            const double x = block(t, first);
            const double y = block(t, second);
            result(t, first) = x * cosine - y * sine;
            result(t, second) = x * sine + y * cosine;
        }
    }
    const double factor = rope.scaling ? rope.scaling->attention_factor : 1.0;
    if (factor != 1.0) result *= direction == Direction::apply ? factor : 1.0 / factor;
    return result;
}

std::vector<double> positions_from(double first, std::size_t count) {
    std::vector<double> positions(count);
    for (std::size_t t = 0; t < count; ++t) positions[t] = first + static_cast<double>(t);
    return positions;
}

}  // namespace

std::string_view rope_style_name(RopeStyle style) {
    return style == RopeStyle::interleaved ? "interleaved" : "rotate-half";
}

RopeStyle parse_rope_style(std::string_view text) {
    for (const auto style : {RopeStyle::rotate_half, RopeStyle::interleaved})
        if (text == rope_style_name(style)) return style;
    const std::vector<std::string> names = {"rotate-half", "interleaved"};
    throw usage_error("unknown style of rotary embedding \"{}\"{}", text, suggestion(text, names));
}

std::size_t rope_pair(RopeStyle style, std::size_t coordinate, std::size_t dim) {
    return style == RopeStyle::interleaved ? coordinate / 2 : coordinate % (dim / 2);
}

arma::mat apply_rope(const arma::mat& block, const Rope& rope, std::span<const double> positions) {
    return rotated(block, rope, positions, Direction::apply);
}

arma::mat undo_rope(const arma::mat& block, const Rope& rope, std::span<const double> positions) {
    return rotated(block, rope, positions, Direction::undo);
}

arma::mat apply_rope(const arma::mat& block, const Rope& rope, double first_position) {
    return apply_rope(block, rope, positions_from(first_position, block.n_rows));
}

arma::mat undo_rope(const arma::mat& block, const Rope& rope, double first_position) {
    return undo_rope(block, rope, positions_from(first_position, block.n_rows));
}

}  // namespace spiked::sim
