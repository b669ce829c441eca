#include "estimators/quantizers/groups/microscaling.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

/// Magnitudes of a float with these numbers of exponent and mantissa bits, by code; the first `codes` codes are
/// numbers.
std::vector<double> magnitudes(unsigned exponent_bits, unsigned mantissa_bits, std::size_t codes) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int ones = 1 << mantissa_bits;
    std::vector<double> values(codes);
    for (std::size_t code = 0; code < codes; ++code) {
        const int exponent = static_cast<int>(code >> mantissa_bits);
        const int fraction = static_cast<int>(code % static_cast<std::size_t>(ones));
        // Subnormal numbers have the exponent of the smallest normal ones.
        values[code] = std::ldexp(exponent == 0 ? fraction : ones + fraction,
                                  std::max(exponent, 1) - bias - static_cast<int>(mantissa_bits));
    }
    return values;
}

// The last code of E4M3 is NaN.
std::vector<double> e4m3() { return magnitudes(4, 3, 127); }

std::vector<double> elements_of(unsigned bits) {
    if (bits == 4) return magnitudes(2, 1, 8);
    if (bits == 6) return magnitudes(2, 3, 32);
    if (bits == 8) return e4m3();
    throw usage_error("elements of {} bits are not possible with mx: choose --bits 4, 6 or 8", bits);
}

/// The code nearest to x >= 0; of two equally near ones the even one.
std::size_t nearest(const std::vector<double>& values, double x) {
    const auto above = static_cast<std::size_t>(std::lower_bound(values.begin(), values.end(), x) - values.begin());
    if (above == 0) return 0;
    if (above == values.size()) return above - 1;
    const double gap = (x - values[above - 1]) - (values[above] - x);
    return gap < 0.0 || (gap == 0.0 && above % 2 == 1) ? above - 1 : above;
}

constexpr int e8m0_bias = 127;
constexpr std::uint64_t not_a_number = 255;

struct MicroscalingSetup {
    std::size_t dimension;
    unsigned bits;
    std::size_t group;
    GroupScale scale;
    Underflow underflow;
    std::vector<double> elements;
    std::vector<double> scales;  ///< only for e4m3

    [[nodiscard]] std::size_t groups() const { return (dimension + group - 1) / group; }
};

[[noreturn]] void reject_size(double largest, std::string_view what) {
    throw input_error(
        "a group with entries up to {:.6g} is too {} (its scale is a power of two of 2^-127 to 2^127): scale the data "
        "or use scale=e4m3",
        largest, what);
}

std::uint64_t power_of_two(const MicroscalingSetup& setup, double largest) {
    if (largest == 0.0) return 0;
    const int code = std::ilogb(largest) - std::ilogb(setup.elements.back()) + e8m0_bias;
    if (code > 2 * e8m0_bias) reject_size(largest, "large");
    if (code < 0 && setup.underflow == Underflow::rejected) reject_size(largest, "small");
    return static_cast<std::uint64_t>(std::max(code, 0));
}

double scale_of(const MicroscalingSetup& setup, std::uint64_t code, double unit) {
    if (setup.scale == GroupScale::e8m0) {
        if (code == not_a_number) throw input_error("a group's scale is NaN: the bytes are not those of mx");
        return std::ldexp(1.0, static_cast<int>(code) - e8m0_bias);
    }
    if (code >= setup.scales.size()) throw input_error("a group's scale is NaN: the bytes are not those of mx");
    return setup.scales[code] * unit;
}

Encoded encode(const MicroscalingSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    if (!rows.is_finite())
        throw input_error("a row holds NaN or infinity (its group has no scale): clean the data first");
    arma::mat largest(setup.groups(), rows.n_rows, arma::fill::zeros);
    for (std::size_t j = 0; j < setup.dimension; ++j)
        for (std::size_t t = 0; t < rows.n_rows; ++t)
            largest(j / setup.group, t) = std::max(largest(j / setup.group, t), std::abs(rows(t, j)));
    BitWriter writer;
    double unit = 0.0;
    if (setup.scale == GroupScale::e4m3) {
        const double whole = largest.is_empty() ? 0.0 : largest.max() / setup.elements.back() / setup.scales.back();
        if (setup.underflow == Underflow::rejected) reject_underflow(whole, NumberFormat::fp32, "scale of a block");
        const std::uint64_t stored = encode_number(whole, NumberFormat::fp32, "scale of a block");
        writer.write(Item::scales, stored, bits_of(NumberFormat::fp32));
        unit = decode_number(stored, NumberFormat::fp32);
    }
    arma::mat scales(arma::size(largest), arma::fill::zeros);
    for (std::size_t t = 0; t < rows.n_rows; ++t)
        for (std::size_t g = 0; g < setup.groups(); ++g) {
            const std::uint64_t code = setup.scale == GroupScale::e8m0 ? power_of_two(setup, largest(g, t))
                                       : unit > 0.0
                                           ? nearest(setup.scales, largest(g, t) / setup.elements.back() / unit)
                                           : 0;
            writer.write(Item::scales, code, 8);
            scales(g, t) = scale_of(setup, code, unit);
        }
    std::vector<std::uint8_t> codes;
    codes.reserve(rows.n_elem);
    const std::size_t sign = std::size_t{1} << (setup.bits - 1);
    for (std::size_t j = 0; j < setup.dimension; ++j)
        for (std::size_t t = 0; t < rows.n_rows; ++t) {
            const double scale = scales(j / setup.group, t);
            const std::size_t code = scale > 0.0 ? nearest(setup.elements, std::abs(rows(t, j)) / scale) : 0;
            codes.push_back(static_cast<std::uint8_t>(code + (std::signbit(rows(t, j)) ? sign : 0)));
        }
    writer.write_cells(Item::indices, codes, setup.bits);
    return finished(writer);
}

arma::mat decode(const MicroscalingSetup& setup, std::span<const std::uint8_t> bytes, std::size_t count) {
    BitReader reader(bytes);
    double unit = 0.0;
    if (setup.scale == GroupScale::e4m3) {
        unit = decode_number(reader.read(bits_of(NumberFormat::fp32)), NumberFormat::fp32);
        if (!(unit >= 0.0 && std::isfinite(unit)))
            throw input_error("the scale of a block is {}: the bytes are not those of mx", unit);
    }
    arma::mat scales(setup.groups(), count);
    for (double& scale : scales) scale = scale_of(setup, reader.read(8), unit);
    arma::Mat<std::uint8_t> codes(count, setup.dimension);
    reader.read_cells({codes.memptr(), codes.n_elem}, setup.bits);
    reader.require_end();
    const std::size_t sign = std::size_t{1} << (setup.bits - 1);
    arma::mat rows(count, setup.dimension);
    for (std::size_t j = 0; j < setup.dimension; ++j)
        for (std::size_t t = 0; t < count; ++t) {
            const std::size_t code = codes(t, j) % sign;
            if (code >= setup.elements.size()) throw input_error("an element is NaN: the bytes are not those of mx");
            const double value = setup.elements[code] * scales(j / setup.group, t);
            rows(t, j) = codes(t, j) < sign ? value : -value;
        }
    return rows;
}

}  // namespace

RowQuantizer microscaling(std::size_t dimension, unsigned bits, const MicroscalingOptions& options) {
    const auto setup = std::make_shared<const MicroscalingSetup>(
        MicroscalingSetup{dimension, bits, options.group, options.scale, options.underflow, elements_of(bits), e4m3()});
    return in_double(
        "mx", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

QuantizerFamily mx_family() {
    return {
        {{"mx",
          "small floats with one scale for each group of a row, a format that accelerators compute with",
          {{"group", whole("G", 1), "number of entries that share a scale",
            std::to_string(MicroscalingOptions{}.group)},
           {"scale", one_of<GroupScale>(), "number format of a group's scale; e4m3 with group=16 and 4 bits is NVFP4",
            std::string(enum_name(MicroscalingOptions{}.scale))}},
          "Open Compute Project 2023 (MX)",
          {"mxfp4", "mxfp6", "mxfp8", "nvfp4"}},
         "bits of an element: 4, 6 or 8",
         true,
         false,
         {4, 6, 8}},
        [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
            return microscaling(
                dimension, static_cast<unsigned>(bits),
                {named.whole_or_default("group"), named.choice_or_default<GroupScale>("scale"), options.underflow});
        }};
}

}  // namespace spiked::estimators
