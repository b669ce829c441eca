#pragma once
#include <cstddef>
#include <functional>

namespace spiked {

/// So many threads as are asked for; for 0 all the machine has. Throws usage_error for more than 4096.
[[nodiscard]] std::size_t thread_count(std::size_t asked);

/// Has OpenBLAS take the buffers (128 MiB of address space each, untouched) that calls on so many threads at once need.
/// Without room for one it would wait in its first product for ever; std::bad_alloc here instead.
void hold_blas_buffers(std::size_t threads);

/// Runs work(0) .. work(count - 1) on `thread_count(threads)` threads in any order. An exception stops the
/// rest; the one of the lowest index that failed is thrown again here. Fewer threads where the machine gives no more.
void for_each_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

}  // namespace spiked
