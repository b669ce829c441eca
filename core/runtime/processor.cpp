#include "core/runtime/processor.hpp"

namespace spiked {

const Processor& processor() {
#if defined(__x86_64__)
    static const Processor found = {
        .avx2 = __builtin_cpu_supports("avx2") != 0,
        .fma = __builtin_cpu_supports("fma") != 0,
        .f16c = __builtin_cpu_supports("f16c") != 0,
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
