#pragma once
#include <span>

#include "sim/stream/address.hpp"

namespace spiked::stream {

/// Independent standard normals by Box-Muller, entry e from word block e/2: filling part of an array or all of it gives
/// the same numbers. Reaches 8.5 standard deviations. Throws bug beyond 2^33 entries.
void fill_normal(const Stream& stream, std::span<double> out);

}  // namespace spiked::stream
