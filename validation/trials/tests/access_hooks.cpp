// The functions that code compiled with -fsanitize=thread calls at each access to memory, in place of the thread
// sanitizer's own: they report the access to the watch of emulated kernels (core/device/global_watch.hpp). This file
// itself is compiled without them.
#include <cstddef>
#include <cstdint>

#include "core/device/global_watch.hpp"

using spiked::cuda::GlobalWatch;

#define SPIKED_ACCESS_HOOKS(size)                                                      \
    void __tsan_read##size(void* at) { GlobalWatch::note(at, size, false); }           \
    void __tsan_write##size(void* at) { GlobalWatch::note(at, size, true); }           \
    void __tsan_unaligned_read##size(void* at) { GlobalWatch::note(at, size, false); } \
    void __tsan_unaligned_write##size(void* at) { GlobalWatch::note(at, size, true); }
/// Atomic operations, which only code of the host uses.
#define SPIKED_ATOMIC_HOOKS(bits)                                                                                    \
    std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at, int) {                    \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                                \
    }                                                                                                                \
    void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value, int) {             \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                               \
    }                                                                                                                \
    std::uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile std::uint##bits##_t* at, std::uint##bits##_t value, \
                                                        int) {                                                       \
        return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                                      \
    }                                                                                                                \
    std::uint##bits##_t __tsan_atomic##bits##_fetch_sub(volatile std::uint##bits##_t* at, std::uint##bits##_t value, \
                                                        int) {                                                       \
        return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                                                      \
    }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* at, std::size_t bytes) { GlobalWatch::note(at, bytes, false); }
void __tsan_write_range(void* at, std::size_t bytes) { GlobalWatch::note(at, bytes, true); }
SPIKED_ACCESS_HOOKS(1)
SPIKED_ACCESS_HOOKS(2)
SPIKED_ACCESS_HOOKS(4)
SPIKED_ACCESS_HOOKS(8)
SPIKED_ACCESS_HOOKS(16)
SPIKED_ATOMIC_HOOKS(8)
SPIKED_ATOMIC_HOOKS(32)
SPIKED_ATOMIC_HOOKS(64)
}
