#pragma once
#include <cstdint>

namespace spiked::estimators {

/// Functions of the coder's path, computed with + - * / alone in a fixed order: the same bits on every machine, where
/// the functions of C libraries differ in the last place. Relative error below 4e-15. Not for loops that must be fast.

/// e^x for -700 <= x <= 700.
[[nodiscard]] double exact_exp(double x);
/// 2^(numerator / denominator), denominator > 0 and the result within the range of normal numbers.
[[nodiscard]] double exact_power_of_two(std::int32_t numerator, std::int32_t denominator);
/// log2(x) for normal x > 0; exact for powers of two, otherwise to an absolute error of 1e-15 beside its rounding.
[[nodiscard]] double exact_log2(double x);
/// floor(2 log2 x) for normal x > 0, exact.
[[nodiscard]] int half_octave(double x);

}  // namespace spiked::estimators
