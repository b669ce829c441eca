#pragma once

namespace spiked {

/// The SIMD instruction sets of the processor this runs on; all false on processors other than x86-64. Functions that
/// need an instruction set are compiled for it individually and called only where it is available.
struct Processor {
    bool avx2 = false;
    bool fma = false;
    bool f16c = false;
    bool avx512f = false;
    bool avx512bw = false;
    bool avx512dq = false;
    bool avx512vl = false;
};

[[nodiscard]] const Processor& processor();

}  // namespace spiked
