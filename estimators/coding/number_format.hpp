#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "estimators/coding/byte_stream.hpp"

namespace spiked::estimators {

/// How stored scalars (row norms, scales, singular values) are written. log8 is for numbers >= 0 and writes them in
/// groups: the largest in fp32, then for each the byte round(1 + 254 (1 + log2(x / largest) / 12)), 0 for what lies
/// below 2^-12 of the largest. Its relative error is at most 1.7 %, 1 % in the mean square.
enum class NumberFormat { fp16, bf16, fp32, fp64, log8 };

[[nodiscard]] NumberFormat number_format(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(NumberFormat format);
[[nodiscard]] unsigned bits_of(NumberFormat format);  ///< of each number
/// What to do with a value that its format does not hold, for messages.
[[nodiscard]] std::string_view advice_for(double value);

/// Whether all numbers of a list may vanish: only where they are small beside others that are stored.
enum class Underflow { refused, allowed };

/// Writes numbers, entered under `item`; throws what encode_number and, for the largest of them, reject_underflow
/// throw. A small number beside larger ones may vanish; all of them must not.
void write_numbers(BitWriter& writer, Item item, std::span<const double> values, NumberFormat format,
                   std::string_view what, Underflow underflow = Underflow::refused);
/// What write_numbers wrote, as many of them.
void read_numbers(BitReader& reader, std::span<double> values, NumberFormat format);
/// Both at once: what will be read of it.
[[nodiscard]] std::vector<double> write_and_read_numbers(BitWriter& writer, Item item, std::span<const double> values,
                                                         NumberFormat format, std::string_view what,
                                                         Underflow underflow = Underflow::refused);

/// A single number; not in log8. Nearest representable value as bits. Throws input_error when a finite value overflows;
/// `what` names it in the message.
[[nodiscard]] std::uint64_t encode_number(double value, NumberFormat format, std::string_view what);
/// Throws input_error when a value other than 0 lies so far below the format's normal range that it would be stored
/// with less than 8 bits, or as 0: the data would silently vanish.
void reject_underflow(double value, NumberFormat format, std::string_view what);
[[nodiscard]] double decode_number(std::uint64_t bits, NumberFormat format);

}  // namespace spiked::estimators
