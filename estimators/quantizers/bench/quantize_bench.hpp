#pragma once
#include <armadillo>
#include <cstdint>
#include <vector>

#include "core/timing/stopwatch.hpp"
#include "estimators/quantizers/quantizer_table.hpp"

namespace spiked::estimators {

struct TimedRowQuantizer {
    const char* what;
    const char* method;
    RotationKind rotation;
};
[[nodiscard]] const std::vector<TimedRowQuantizer>& timed_row_quantizers();
/// A block of size x size normal entries.
[[nodiscard]] arma::fmat benchmark_rows(std::size_t size, std::uint64_t replicate);

/// Times the float path of row quantizers on a 128 x 128 block of normal entries, bits packed, in turn, one thread:
///   METHOD:B:encode, METHOD:B:decode   tq-mse (Haar), tq-mse-rht2, tq-prod, eden, kivi (groups of 64 channels);
///                                      B = 2, 3, 4; norms, scales and minima in fp16
///   gemm                               a 128 x 128 x 128 product in float
///   copy                               the block's bytes, from one place to another
[[nodiscard]] std::vector<Timing> time_row_quantizers(double seconds);

}  // namespace spiked::estimators
