#pragma once

namespace spiked {

/// What registers the processor has that this runs on; none elsewhere than on x86-64. Functions that need them are
/// compiled for them one by one, and only called where they are.
struct Processor {
    bool avx2 = false;
    bool fma = false;
    bool avx512f = false;
    bool avx512bw = false;
    bool avx512dq = false;
    bool avx512vl = false;
};

[[nodiscard]] const Processor& processor();

}  // namespace spiked
