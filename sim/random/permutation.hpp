#pragma once
#include <cstddef>
#include <vector>

#include "sim/random/address.hpp"

namespace spiked::stream {

/// A uniform permutation of 0 .. count - 1, a pure function of the stream (Fisher and Yates).
[[nodiscard]] std::vector<std::size_t> random_order(const Stream& stream, std::size_t count);

}  // namespace spiked::stream
