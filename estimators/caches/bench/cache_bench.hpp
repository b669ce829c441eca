#pragma once
#include <cstddef>
#include <vector>

#include "core/timing/stopwatch.hpp"

namespace spiked::estimators {

/// The cache of a layer: keys and values of so many heads.
struct BenchmarkLayer {
    std::size_t heads = 2;
    std::size_t dimension = 128;
    double bits = 2.0;

    [[nodiscard]] std::size_t channels() const { return 2 * heads * dimension; }
};

/// What a causal method holds for the layer after its freeze.
struct CausalLayer {
    const char* method;
    std::size_t state_bytes = 0;  ///< memory of the state of a decoder
    double bits_per_entry = 0.0;  ///< of the block that is timed
};

struct CacheTimings {
    /// Microseconds of processor time for 128 tokens of the layer:
    ///   METHOD:encode, METHOD:decode   tq-mse (Haar), tcq; causal-klt, causal-klt-joint after the freeze, block alone
    ///   METHOD:learn                   of the causal ones: encoding before the freeze, bases included; timed once
    ///   METHOD:read                    decoding what one head needs: its own block, or that of the layer
    ///   gemm                           tokens x channels by channels x channels, in double
    std::vector<Timing> rows;
    std::vector<CausalLayer> states;
};

/// Times methods on one thread, on rows of normal processes of first order whose channels have standard deviations from
/// 1 to 1/32, behind a random rotation of all channels. The steps of the causal ones are chosen for about `bits` an
/// entry. Throws usage_error for bits that a method does not support.
[[nodiscard]] CacheTimings time_caches(const BenchmarkLayer& layer, double seconds);

}  // namespace spiked::estimators
