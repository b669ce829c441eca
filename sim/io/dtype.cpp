#include "sim/io/dtype.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/device/float16.hpp"
#include "core/runtime/error.hpp"

namespace spiked::sim {
namespace {

struct TypeEntry {
    DType dtype;
    std::string_view name;
    unsigned bits;
};

constexpr std::array table{
    TypeEntry{DType::boolean, "BOOL", 8},
    TypeEntry{DType::f4, "F4", 4},
    TypeEntry{DType::f6_e2m3, "F6_E2M3", 6},
    TypeEntry{DType::f6_e3m2, "F6_E3M2", 6},
    TypeEntry{DType::u8, "U8", 8},
    TypeEntry{DType::i8, "I8", 8},
    TypeEntry{DType::f8_e5m2, "F8_E5M2", 8},
    TypeEntry{DType::f8_e4m3, "F8_E4M3", 8},
    TypeEntry{DType::f8_e8m0, "F8_E8M0", 8},
    TypeEntry{DType::f8_e4m3fnuz, "F8_E4M3FNUZ", 8},
    TypeEntry{DType::f8_e5m2fnuz, "F8_E5M2FNUZ", 8},
    TypeEntry{DType::i16, "I16", 16},
    TypeEntry{DType::u16, "U16", 16},
    TypeEntry{DType::f16, "F16", 16},
    TypeEntry{DType::bf16, "BF16", 16},
    TypeEntry{DType::i32, "I32", 32},
    TypeEntry{DType::u32, "U32", 32},
    TypeEntry{DType::f32, "F32", 32},
    TypeEntry{DType::c64, "C64", 64},
    TypeEntry{DType::f64, "F64", 64},
    TypeEntry{DType::i64, "I64", 64},
    TypeEntry{DType::u64, "U64", 64},
};

const TypeEntry& entry_of(DType dtype) {
    for (const auto& entry : table)
        if (entry.dtype == dtype) return entry;
    throw precondition_error("dtype {} is not in the table", static_cast<int>(dtype));
}

template <class Stored, class Convert>
void decode_each(std::span<const std::byte> bytes, std::span<double> out, std::endian order, Convert convert) {
    const bool swap = order != std::endian::native;
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::array<std::byte, sizeof(Stored)> raw;
        std::memcpy(raw.data(), bytes.data() + i * sizeof(Stored), sizeof(Stored));
        if (swap) std::reverse(raw.begin(), raw.end());
        out[i] = convert(std::bit_cast<Stored>(raw));
    }
}

template <class Stored>
void decode_number(std::span<const std::byte> bytes, std::span<double> out, std::endian order) {
    decode_each<Stored>(bytes, out, order, [](Stored value) { return static_cast<double>(value); });
}

template <class Stored, class Convert>
void encode_each(std::span<const double> values, std::span<std::byte> out, Convert convert) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto raw = std::bit_cast<std::array<std::byte, sizeof(Stored)>>(convert(values[i]));
        if constexpr (std::endian::native != std::endian::little) std::reverse(raw.begin(), raw.end());
        std::memcpy(out.data() + i * sizeof(Stored), raw.data(), sizeof(Stored));
    }
}

/// An E4M3 number of the variant without infinities (OCP FP8: bias 7, NaN is S.1111.111, largest 448).
double from_e4m3(std::uint8_t bits) {
    constexpr unsigned nan = 0x7F;
    if ((bits & nan) == nan) return std::numeric_limits<double>::quiet_NaN();
    const unsigned exponent = (bits >> 3) & 0xFU;
    const int significand = static_cast<int>(bits & 7U) + (exponent == 0 ? 0 : 8);
    const double magnitude = std::ldexp(significand, std::max(static_cast<int>(exponent), 1) - 10);
    return (bits & 0x80U) != 0 ? -magnitude : magnitude;
}

/// The smallest double that rounds to infinity: half a step above the largest finite value, where the tie goes up.
double first_overflow(DType dtype) {
    if (dtype == DType::f16) return 65520.0;
    if (dtype == DType::bf16) return 0x1.FFp127;
    if (dtype == DType::f32) return 0x1.FFFFFFp127;
    return HUGE_VAL;
}

}  // namespace

std::string_view dtype_name(DType dtype) { return entry_of(dtype).name; }

std::optional<DType> dtype_of_name(std::string_view name) {
    for (const auto& entry : table)
        if (entry.name == name) return entry.dtype;
    return std::nullopt;
}

unsigned dtype_bits(DType dtype) { return entry_of(dtype).bits; }

bool is_block_dtype(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

bool is_fp8_dtype(DType dtype) { return dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2; }

bool is_code_dtype(DType dtype) { return is_fp8_dtype(dtype) || dtype == DType::i8 || dtype == DType::u8; }

void decode(std::span<const std::byte> bytes, DType dtype, std::span<double> out, std::endian order) {
    if (bytes.size() != out.size() * (dtype_bits(dtype) / 8))
        throw precondition_error("decode: {} bytes for {} elements of {}", bytes.size(), out.size(), dtype_name(dtype));
    switch (dtype) {
        case DType::boolean:
            return decode_each<std::uint8_t>(bytes, out, order, [](std::uint8_t v) { return v != 0 ? 1.0 : 0.0; });
        case DType::u8:
            return decode_number<std::uint8_t>(bytes, out, order);
        case DType::i8:
            return decode_number<std::int8_t>(bytes, out, order);
        case DType::f8_e4m3:
            return decode_each<std::uint8_t>(bytes, out, order, from_e4m3);
        case DType::f8_e5m2:
            // The first byte of a binary16 number.
            return decode_each<std::uint8_t>(bytes, out, order, [](std::uint8_t v) {
                return from_float16(static_cast<std::uint16_t>(unsigned{v} << 8));
            });
        case DType::i16:
            return decode_number<std::int16_t>(bytes, out, order);
        case DType::u16:
            return decode_number<std::uint16_t>(bytes, out, order);
        case DType::f16:
            return decode_each<std::uint16_t>(bytes, out, order, from_float16);
        case DType::bf16:
            return decode_each<std::uint16_t>(bytes, out, order, from_bfloat16);
        case DType::i32:
            return decode_number<std::int32_t>(bytes, out, order);
        case DType::u32:
            return decode_number<std::uint32_t>(bytes, out, order);
        case DType::f32:
            return decode_number<float>(bytes, out, order);
        case DType::f64:
            return decode_number<double>(bytes, out, order);
        case DType::i64:
            return decode_number<std::int64_t>(bytes, out, order);
        case DType::u64:
            return decode_number<std::uint64_t>(bytes, out, order);
        default:
            throw precondition_error("decode: {} cannot be decoded", dtype_name(dtype));
    }
}

std::optional<std::size_t> encode(std::span<const double> values, DType dtype, std::span<std::byte> out) {
    if (out.size() != values.size() * (dtype_bits(dtype) / 8))
        throw precondition_error("encode: {} bytes for {} elements of {}", out.size(), values.size(),
                                 dtype_name(dtype));
    switch (dtype) {
        case DType::f16:
            encode_each<std::uint16_t>(values, out, to_float16);
            break;
        case DType::bf16:
            encode_each<std::uint16_t>(values, out, to_bfloat16);
            break;
        case DType::f32:
            encode_each<float>(values, out, [](double v) { return static_cast<float>(v); });
            break;
        case DType::f64:
            encode_each<double>(values, out, [](double v) { return v; });
            break;
        case DType::i32:
            encode_each<std::int32_t>(values, out,
                                      [](double v) { return static_cast<std::int32_t>(std::nearbyint(v)); });
            break;
        default:
            throw precondition_error("encode: {} cannot be written", dtype_name(dtype));
    }
    const double limit = first_overflow(dtype);
    const auto lost =
        std::find_if(values.begin(), values.end(), [&](double v) { return std::isfinite(v) && std::abs(v) >= limit; });
    if (lost == values.end()) return std::nullopt;
    return static_cast<std::size_t>(lost - values.begin());
}

}  // namespace spiked::sim
