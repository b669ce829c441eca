#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "estimators/coding/byte_stream.hpp"

namespace spiked::estimators {

/// The format of stored scalars (row norms, scales, singular values). log8 is for numbers >= 0 and writes them in
/// groups: the largest in fp32, then for each number the byte round(1 + 254 (1 + log2(x / largest) / 12)), or 0 for a
/// number below 2^-12 of the largest. Its relative error is at most 1.7 %, 1 % in the mean square.
enum class NumberFormat { fp16, bf16, fp32, fp64, log8 };

[[nodiscard]] NumberFormat number_format(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(NumberFormat format);
[[nodiscard]] unsigned bits_of(NumberFormat format);  ///< bits of each number
/// Advice for messages about a value that its format cannot hold.
[[nodiscard]] std::string_view advice_for(double value);

/// Whether all numbers of a list may underflow. This is allowed only where they are small beside other stored numbers.
enum class Underflow { rejected, allowed };

/// The format in which a quantizer stores its norms, scales, minima or means.
struct ScalarOptions {
    NumberFormat format = NumberFormat::fp16;
    Underflow underflow = Underflow::rejected;
};

/// Writes numbers and enters them in the ledger under `item`; throws what encode_number and, for the largest of them,
/// reject_underflow throw. A small number beside larger ones may underflow; not all of them may.
void write_numbers(BitWriter& writer, Item item, std::span<const double> values, NumberFormat format,
                   std::string_view what, Underflow underflow = Underflow::rejected);
/// Reads values.size() numbers that write_numbers wrote.
void read_numbers(BitReader& reader, std::span<double> values, NumberFormat format);
/// Writes numbers and returns the values that read_numbers will return.
[[nodiscard]] std::vector<double> write_and_read_numbers(BitWriter& writer, Item item, std::span<const double> values,
                                                         NumberFormat format, std::string_view what,
                                                         Underflow underflow = Underflow::rejected);

/// Encodes a single number, not in log8, as the bits of the nearest representable value. Throws input_error when a
/// finite value overflows; `what` names it in the message.
[[nodiscard]] std::uint64_t encode_number(double value, NumberFormat format, std::string_view what);
/// Throws input_error when a value other than 0 lies so far below the format's normal range that it would be stored
/// with less than 8 bits, or as 0, because the data would vanish silently.
void reject_underflow(double value, NumberFormat format, std::string_view what);
[[nodiscard]] double decode_number(std::uint64_t bits, NumberFormat format);

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::NumberFormat> {
    static constexpr EnumName<spiked::estimators::NumberFormat> table[] = {
        {spiked::estimators::NumberFormat::fp16, "fp16", "float16"},
        {spiked::estimators::NumberFormat::bf16, "bf16", "bfloat16"},
        {spiked::estimators::NumberFormat::fp32, "fp32", "float32"},
        {spiked::estimators::NumberFormat::fp64, "fp64"},
        {spiked::estimators::NumberFormat::log8, "log8"}};
};
