#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

struct RhtUniformOptions {
    stream::StudySeed seed;
    std::uint64_t index = 0;  ///< which rotation of the seed
    std::size_t group = 64;   ///< entries of a row that share a minimum and a scale
    ScalarOptions scales;
};

/// Rows rotated by a randomised Hadamard transform, then min-max groups along the row as in kivi (kivi.hpp).
///
/// Source: QuaRot (Ashkboos et al. 2024) and the KV quantization of public inference engines. One round, FHT-Kac where
/// the dimension is not a power of two; --rotation has no effect. Stored: the data of kivi along channels. Bits B + 2 f
/// / G. For 2 bits and groups of 64 the relative error is about 45 %, that of min-max groups of normal entries
/// (theory::min_max_relative_mse). Throws the errors of kivi.
[[nodiscard]] RowQuantizer rht_uniform(std::size_t dimension, unsigned bits, const RhtUniformOptions& options);

}  // namespace spiked::estimators
