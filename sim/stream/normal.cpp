#include "sim/stream/normal.hpp"

#include <cmath>
#include <numbers>

#include "theory/base/error.hpp"

namespace spiked::stream {

void fill_normal(const Stream& stream, std::span<double> out) {
    if (out.size() > std::size_t{1} << 33) throw bug("{} normals asked of one stream, which holds 2^33", out.size());
    for (std::size_t pair = 0; 2 * pair < out.size(); ++pair) {
        const PhiloxCounter words = stream.words(static_cast<std::uint32_t>(pair));
        const std::uint64_t first = std::uint64_t{words[1]} << 32 | words[0];
        const std::uint64_t second = std::uint64_t{words[3]} << 32 | words[2];
        const double radius = std::sqrt(-2.0 * std::log(static_cast<double>((first >> 11) + 1) * 0x1p-53));
        const double angle = 2.0 * std::numbers::pi * (static_cast<double>(second >> 11) * 0x1p-53);
        out[2 * pair] = radius * std::cos(angle);
        if (2 * pair + 1 < out.size()) out[2 * pair + 1] = radius * std::sin(angle);
    }
}

}  // namespace spiked::stream
