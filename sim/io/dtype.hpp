#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace spiked::sim {

/// Element types of stored tensors: all types of the safetensors format.
enum class DType : std::uint8_t {
    boolean,
    f4,
    f6_e2m3,
    f6_e3m2,
    u8,
    i8,
    f8_e5m2,
    f8_e4m3,
    f8_e8m0,
    f8_e4m3fnuz,
    f8_e5m2fnuz,
    i16,
    u16,
    f16,
    bf16,
    i32,
    u32,
    f32,
    c64,
    f64,
    i64,
    u64,
};

/// Its name in the safetensors format, for example `F16`.
[[nodiscard]] std::string_view dtype_name(DType dtype);
[[nodiscard]] std::optional<DType> dtype_of_name(std::string_view name);
/// Bits of one element (F4 and F6 do not fill whole bytes).
[[nodiscard]] unsigned dtype_bits(DType dtype);
/// Whether the type is F16, BF16, F32 or F64: KV blocks are written to these types only.
[[nodiscard]] bool is_block_dtype(DType dtype);

/// Whether the type is F8_E4M3 (without infinities, largest number 448) or F8_E5M2.
[[nodiscard]] bool is_fp8_dtype(DType dtype);
/// Whether the type holds the codes of a quantized cache, which a scale turns into numbers: FP8, I8 and U8.
[[nodiscard]] bool is_code_dtype(DType dtype);

/// Converts stored bytes to doubles, exactly (64-bit integers are rounded). `bytes` must hold out.size() elements of a
/// block type, FP8 of is_fp8_dtype, an integer or a boolean; throws precondition_error otherwise.
void decode(std::span<const std::byte> bytes, DType dtype, std::span<double> out,
            std::endian order = std::endian::little);

/// Converts doubles to little-endian bytes of a block type or I32, rounded to nearest even. Returns the position of the
/// first finite value that became infinite, if any; the caller decides whether that is an error.
[[nodiscard]] std::optional<std::size_t> encode(std::span<const double> values, DType dtype, std::span<std::byte> out);

}  // namespace spiked::sim
