#pragma once
#include <cstddef>
#include <functional>

namespace spiked {

/// The requested number of threads, or the number of processors for 0. Throws usage_error for more than 4096.
[[nodiscard]] std::size_t thread_count(std::size_t asked);

/// Runs work(0) .. work(count - 1) on `thread_count(threads)` threads in any order, or on fewer when the machine does
/// not start as many. After an exception no further index is started, and the exception of the lowest index that failed
/// is rethrown here.
void for_each_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

}  // namespace spiked
