#include "estimators/number_format.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "theory/base/error.hpp"
#include "theory/base/float16.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

constexpr std::array<std::string_view, 4> format_names = {"fp16", "bf16", "fp32", "fp64"};
constexpr std::array<unsigned, 4> format_bits = {16, 16, 32, 64};

/// What holds this value.
std::string_view advice(double value) {
    const double size = std::abs(value);
    if (!std::isfinite(value)) return "scale the data";
    return size < 3e38 && size > 2e-38 ? "use --norm bf16 or fp32" : "use --norm fp64";
}

}  // namespace

NumberFormat number_format(std::string_view name) {
    for (std::size_t i = 0; i < format_names.size(); ++i)
        if (name == format_names[i]) return static_cast<NumberFormat>(i);
    const std::vector<std::string> names(format_names.begin(), format_names.end());
    throw usage_error("unknown norm format \"{}\"{}", name, suggestion(name, names));
}

std::string_view name_of(NumberFormat format) { return format_names[static_cast<std::size_t>(format)]; }
unsigned bits_of(NumberFormat format) { return format_bits[static_cast<std::size_t>(format)]; }

std::uint64_t encode_number(double value, NumberFormat format, std::string_view what) {
    std::uint64_t bits = 0;
    switch (format) {
        case NumberFormat::fp16:
            bits = to_float16(value);
            break;
        case NumberFormat::bf16:
            bits = to_bfloat16(value);
            break;
        case NumberFormat::fp32:
            bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
            break;
        case NumberFormat::fp64:
            bits = std::bit_cast<std::uint64_t>(value);
            break;
    }
    if (!std::isfinite(decode_number(bits, format)))
        throw input_error("{} {:.6g} does not fit {} (it would be stored as infinity): {}", what, value,
                          name_of(format), advice(value));
    return bits;
}

void refuse_underflow(double value, NumberFormat format, std::string_view what) {
    const double stored = decode_number(encode_number(value, format, what), format);
    if (std::abs(stored - value) > std::abs(value) * 0x1p-8)
        throw input_error("{} {:.6g} is too small for {} (it would be stored as {:.6g}): {}", what, value,
                          name_of(format), stored, advice(value));
}

double decode_number(std::uint64_t bits, NumberFormat format) {
    switch (format) {
        case NumberFormat::fp16:
            return from_float16(static_cast<std::uint16_t>(bits));
        case NumberFormat::bf16:
            return from_bfloat16(static_cast<std::uint16_t>(bits));
        case NumberFormat::fp32:
            return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        case NumberFormat::fp64:
            break;
    }
    return std::bit_cast<double>(bits);
}

}  // namespace spiked::estimators
