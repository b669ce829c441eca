#include "core/runtime/processor.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace spiked {

#if defined(__x86_64__)
namespace {

/// Reads the bit itself, because Clang 14 does not know the name "f16c". With AVX the system saves its registers.
bool has_f16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") != 0 && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace
#endif

const Processor& processor() {
#if defined(__x86_64__)
    static const Processor found = {
        .avx2 = __builtin_cpu_supports("avx2") != 0,
        .fma = __builtin_cpu_supports("fma") != 0,
        .f16c = has_f16c(),
        .avx512f = __builtin_cpu_supports("avx512f") != 0,
        .avx512bw = __builtin_cpu_supports("avx512bw") != 0,
        .avx512dq = __builtin_cpu_supports("avx512dq") != 0,
        .avx512vl = __builtin_cpu_supports("avx512vl") != 0,
    };
#else
    static const Processor found;
#endif
    return found;
}

}  // namespace spiked
