#pragma once
#include <cstdint>
#include <string_view>

namespace spiked::estimators {

/// How a stored scalar (row norm, singular value) is written.
enum class NumberFormat { fp16, bf16, fp32, fp64 };

[[nodiscard]] NumberFormat number_format(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(NumberFormat format);
[[nodiscard]] unsigned bits_of(NumberFormat format);

/// Nearest representable value as bits. Throws input_error when a finite value overflows; `what` names it in the
/// message.
[[nodiscard]] std::uint64_t encode_number(double value, NumberFormat format, std::string_view what);
/// Throws input_error when a value other than 0 lies so far below the format's normal range that it would be stored with
/// less than 8 bits, or as 0: the data would silently vanish.
void refuse_underflow(double value, NumberFormat format, std::string_view what);
[[nodiscard]] double decode_number(std::uint64_t bits, NumberFormat format);

}  // namespace spiked::estimators
