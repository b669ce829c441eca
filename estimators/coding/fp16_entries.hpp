#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/number_format.hpp"

namespace spiked::estimators {

/// Numbers that are stored in fp16 whatever the format of norms is: recent tokens, windows, outliers, levels, bases.
/// `what` names the number in messages, and `advice` says what to do, since --norm has no effect on these numbers.
inline constexpr std::string_view scale_data = "scale the data";

/// The bits of a number in fp16. Throws input_error when it is beyond the range of fp16.
[[nodiscard]] std::uint64_t fp16_bits(double value, std::string_view what, std::string_view advice);
/// Throws input_error when `largest`, the largest of some entries, would be stored with less than 8 bits, or as 0.
void reject_lost_fp16(double largest, std::string_view what, std::string_view advice);
/// A number rounded to fp16: the value that read_half returns for what write_half wrote. Throws what fp16_bits throws.
[[nodiscard]] double rounded_to_half(double value, std::string_view what, std::string_view advice = scale_data);
void write_half(BitWriter& writer, Item item, double value, std::string_view what,
                std::string_view advice = scale_data);
[[nodiscard]] double read_half(BitReader& reader);
/// Writes entries; throws what fp16_bits and, unless underflow is allowed, reject_lost_fp16 throw.
void write_fp16(BitWriter& writer, Item item, std::span<const double> entries, std::string_view what,
                std::string_view advice, Underflow underflow = Underflow::rejected);

}  // namespace spiked::estimators
