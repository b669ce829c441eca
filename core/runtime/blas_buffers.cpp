#include "core/runtime/blas_buffers.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#ifdef SPIKED_BLAS_BUFFERS
// The work buffer of a call of OpenBLAS. These functions are exported but not public. No public function reserves
// buffers: OpenBLAS maps another one when more calls than before run at once, and where that fails it tries again
// forever, in 0.3.21 and in its development branch; 0.3.29 also does so for the first one, before main. The symbols are
// weak because a program that multiplies no matrices links no BLAS.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int procedure);
[[gnu::weak]] void blas_memory_free(void* buffer);
}
#endif

namespace spiked {

void hold_blas_buffers(std::size_t threads) {
    constexpr std::size_t buffer_bytes = (std::size_t{128} << 20) + 4096;
    constexpr std::size_t most_buffers = 64;  // OpenBLAS has slots for a fixed number
    static std::mutex guard;
    static std::size_t held = 0;
    const std::lock_guard lock(guard);
    threads = std::min(threads, most_buffers);
    if (threads <= held) return;
    {
        std::vector<std::unique_ptr<void, decltype(&std::free)>> trial_buffers;
        for (std::size_t i = held; i < threads; ++i) {
            trial_buffers.emplace_back(std::malloc(buffer_bytes), &std::free);
            if (trial_buffers.back() == nullptr) throw std::bad_alloc();
        }
    }
    held = threads;
#ifdef SPIKED_BLAS_BUFFERS
    if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
    std::vector<void*> buffers;
    for (std::size_t i = 0; i < threads; ++i) buffers.push_back(blas_memory_alloc(0));
    for (void* buffer : buffers) blas_memory_free(buffer);
#endif
}

}  // namespace spiked
