#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "estimators/byte_stream.hpp"
#include "estimators/number_format.hpp"

namespace spiked::estimators {

/// Entries of the data that are kept in fp16 whatever the format of norms is: last tokens, windows, outliers.
/// `what` names one in messages, `advice` says what helps, since --norm does not.

/// Throws input_error for what lies beyond the range of fp16.
[[nodiscard]] std::uint64_t half_of(double value, std::string_view what, std::string_view advice);
/// Throws input_error when the largest of some entries would be stored with less than 8 bits, or as 0.
void refuse_lost_halves(double largest, std::string_view what, std::string_view advice);
/// Writes entries; throws what half_of and, unless underflow is allowed, refuse_lost_halves throw.
void write_halves(BitWriter& writer, Item item, std::span<const double> entries, std::string_view what,
                  std::string_view advice, Underflow underflow = Underflow::refused);

}  // namespace spiked::estimators
