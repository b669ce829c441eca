#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/number_format.hpp"

namespace spiked::estimators {

/// Numbers that are kept in fp16 whatever the format of norms is: last tokens, windows, outliers, levels, bases. `what`
/// names one in messages, `advice` says what helps, since --norm does not.
inline constexpr std::string_view scale_data = "scale the data";

/// Throws input_error for what lies beyond the range of fp16.
[[nodiscard]] std::uint64_t half_of(double value, std::string_view what, std::string_view advice);
/// Throws input_error when the largest of some entries would be stored with less than 8 bits, or as 0.
void reject_lost_fp16(double largest, std::string_view what, std::string_view advice);
/// A number as fp16 keeps it: what read_half gives back of what write_half wrote. Throws what half_of throws.
[[nodiscard]] double rounded_to_half(double value, std::string_view what, std::string_view advice = scale_data);
void write_half(BitWriter& writer, Item item, double value, std::string_view what,
                std::string_view advice = scale_data);
[[nodiscard]] double read_half(BitReader& reader);
/// Writes entries; throws what half_of and, unless underflow is allowed, reject_lost_fp16 throw.
void write_fp16(BitWriter& writer, Item item, std::span<const double> entries, std::string_view what,
                std::string_view advice, Underflow underflow = Underflow::refused);

}  // namespace spiked::estimators
