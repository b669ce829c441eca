#include "estimators/coding/number_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/device/float16.hpp"
#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

// log8: the number of octaves below the largest number, and the steps per octave.
constexpr double log8_octaves = 12.0;
constexpr double log8_steps = 254.0 / log8_octaves;

std::uint64_t log8_code(double value, double largest) {
    if (!(value > 0.0)) return 0;
    const double code = std::round(1.0 + 254.0 + log8_steps * std::log2(value / largest));
    return code < 1.0 ? 0 : static_cast<std::uint64_t>(code);
}

double log8_value(std::uint64_t code, double largest) {
    return code == 0 ? 0.0 : largest * std::exp2((static_cast<double>(code) - 255.0) / log8_steps);
}

}  // namespace

NumberFormat number_format(std::string_view name) { return enum_named<NumberFormat>(name, "norm format"); }
std::string_view name_of(NumberFormat format) { return enum_name(format); }

unsigned bits_of(NumberFormat format) {
    switch (format) {
        case NumberFormat::log8:
            return 8;
        case NumberFormat::fp32:
            return 32;
        case NumberFormat::fp64:
            return 64;
        default:
            return 16;
    }
}

std::string_view advice_for(double value) {
    const double size = std::abs(value);
    if (!std::isfinite(value)) return "scale the data";
    return size < 3e38 && size > 2e-38 ? "use --norm bf16 or fp32" : "use --norm fp64";
}

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
        case NumberFormat::log8:
            throw precondition_error("log8 writes numbers in groups");
    }
    if (!std::isfinite(decode_number(bits, format)))
        throw input_error("{} {:.6g} does not fit {} (it would be stored as infinity): {}", what, value,
                          name_of(format), advice_for(value));
    return bits;
}

void reject_underflow(double value, NumberFormat format, std::string_view what) {
    const double stored = decode_number(encode_number(value, format, what), format);
    if (std::abs(stored - value) > std::abs(value) * 0x1p-8)
        throw input_error("{} {:.6g} is too small for {} (it would be stored as {:.6g}): {}", what, value,
                          name_of(format), stored, advice_for(value));
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
        case NumberFormat::log8:
            throw precondition_error("log8 reads numbers in groups");
    }
    return std::bit_cast<double>(bits);
}

namespace {

/// The encoded numbers and, in log8, their largest.
struct Coded {
    std::vector<std::uint64_t> bits;
    std::optional<std::uint64_t> largest;
};

Coded encode_numbers(std::span<const double> values, NumberFormat format, std::string_view what, Underflow underflow) {
    const double largest =
        *std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    const NumberFormat alone = format == NumberFormat::log8 ? NumberFormat::fp32 : format;
    if (underflow == Underflow::rejected) reject_underflow(largest, alone, fmt::format("largest {}", what));
    Coded coded;
    coded.bits.reserve(values.size());
    if (format != NumberFormat::log8) {
        for (const double value : values) coded.bits.push_back(encode_number(value, format, what));
        return coded;
    }
    coded.largest = encode_number(largest, alone, what);
    const double scale = decode_number(*coded.largest, alone);
    for (const double value : values) coded.bits.push_back(scale > 0.0 ? log8_code(value, scale) : 0);
    return coded;
}

void write_coded(BitWriter& writer, Item item, const Coded& coded, NumberFormat format) {
    if (coded.largest) writer.write(item, *coded.largest, bits_of(NumberFormat::fp32));
    writer.write_all(item, coded.bits, bits_of(format));
}

}  // namespace

void write_numbers(BitWriter& writer, Item item, std::span<const double> values, NumberFormat format,
                   std::string_view what, Underflow underflow) {
    if (!values.empty()) write_coded(writer, item, encode_numbers(values, format, what, underflow), format);
}

void read_numbers(BitReader& reader, std::span<double> values, NumberFormat format) {
    if (values.empty()) return;
    if (format != NumberFormat::log8) {
        for (double& value : values) value = decode_number(reader.read(bits_of(format)), format);
        return;
    }
    const double largest = decode_number(reader.read(32), NumberFormat::fp32);
    for (double& value : values) value = log8_value(reader.read(8), largest);
}

std::vector<double> write_and_read_numbers(BitWriter& writer, Item item, std::span<const double> values,
                                           NumberFormat format, std::string_view what, Underflow underflow) {
    std::vector<double> stored;
    if (values.empty()) return stored;
    const Coded coded = encode_numbers(values, format, what, underflow);
    write_coded(writer, item, coded, format);
    stored.reserve(values.size());
    for (const std::uint64_t bits : coded.bits)
        stored.push_back(coded.largest ? log8_value(bits, decode_number(*coded.largest, NumberFormat::fp32))
                                       : decode_number(bits, format));
    return stored;
}

}  // namespace spiked::estimators
