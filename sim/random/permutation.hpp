#pragma once
#include <cstddef>
#include <vector>

#include "sim/random/address.hpp"

namespace spiked::stream {

/// A uniformly distributed permutation of 0 .. count - 1 (Fisher and Yates), which is a pure function of the stream.
[[nodiscard]] std::vector<std::size_t> random_order(const Stream& stream, std::size_t count);

}  // namespace spiked::stream
