#include "estimators/coding/fp16_entries.hpp"

#include <algorithm>
#include <cmath>

#include "core/device/float16.hpp"
#include "core/runtime/error.hpp"

namespace spiked::estimators {

std::uint64_t fp16_bits(double value, std::string_view what, std::string_view advice) {
    const std::uint16_t half = to_float16(value);
    if (!std::isfinite(from_float16(half)))
        throw input_error("{} {:.6g} is beyond the range of fp16 (it is always stored in fp16): {}", what, value,
                          advice);
    return half;
}

void reject_lost_fp16(double largest, std::string_view what, std::string_view advice) {
    const double stored = from_float16(to_float16(largest));
    if (std::abs(stored - largest) > std::abs(largest) * 0x1p-8)
        throw input_error("the largest {} {:.6g} is too small for fp16 (it is always stored in fp16): {}", what,
                          largest, advice);
}

double rounded_to_half(double value, std::string_view what, std::string_view advice) {
    return from_float16(static_cast<std::uint16_t>(fp16_bits(value, what, advice)));
}

void write_half(BitWriter& writer, Item item, double value, std::string_view what, std::string_view advice) {
    writer.write(item, fp16_bits(value, what, advice), 16);
}

double read_half(BitReader& reader) { return from_float16(static_cast<std::uint16_t>(reader.read(16))); }

void write_fp16(BitWriter& writer, Item item, std::span<const double> entries, std::string_view what,
                std::string_view advice, Underflow underflow) {
    double largest = 0.0;
    for (const double entry : entries) {
        write_half(writer, item, entry, what, advice);
        largest = std::max(largest, std::abs(entry));
    }
    if (underflow == Underflow::rejected) reject_lost_fp16(largest, what, advice);
}

}  // namespace spiked::estimators
