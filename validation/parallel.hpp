#pragma once
#include <cstddef>
#include <functional>

namespace spiked::validation {

/// Runs work(0) .. work(count - 1) on `threads` threads (0: all the machine has) in any order. An exception stops the
/// rest; the one of the lowest index that failed is thrown again here.
void for_each_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

}  // namespace spiked::validation
