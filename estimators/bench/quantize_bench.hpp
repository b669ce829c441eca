#pragma once
#include <vector>

#include "theory/base/stopwatch.hpp"

namespace spiked::estimators {

/// Times the float path of row quantizers on a 128 x 128 block of normal entries, bits packed, in turn, one thread:
///   METHOD:B:encode, METHOD:B:decode   tq-mse (Haar), tq-mse-rht2, tq-prod, eden, kivi (groups of 64 channels);
///                                      B = 2, 3, 4; norms, scales and minima in fp16
///   gemm                               a 128 x 128 x 128 product in float
///   copy                               the block's bytes, from one place to another
[[nodiscard]] std::vector<Timing> time_row_quantizers(double seconds);

}  // namespace spiked::estimators
