#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// SVDq: the block less its column means, in the coordinates of its right singular vectors, leading ones coded with
/// more bits and the last ones not at all.
///
/// Source: Yankun et al., "SVDq", 2025. With X - mean = U S V^T the latent channels (X - mean) V fall into eight groups
/// by singular value, coded at these bits an entry, each channel with its own minimum and scale over the tokens:
///   B = 1: 4 4;  2: 8 4 4;  3: 8 8 4 4;  4: 8 8 4 4 4 4;  5: 8 8 8 4 4 4 4;  6: four 8, four 4;  7: six 8, two 4;
///   8: 8.
/// Stored: means (ledger: zeros) in the format of the options, the vectors of coded channels in fp16 (factor_indices),
/// then group after group what kivi stores on axis key. In its source the vectors serve a whole prompt; in a block of n
/// tokens they cost 16 / n bits an entry a channel, all of it counted: 16 bits for a full basis at n = d. Throws
/// input_error for NaN, infinity, or what does not fit the format.
[[nodiscard]] RowQuantizer svdq(std::size_t dimension, unsigned bits, const ScalarOptions& scalars);

}  // namespace spiked::estimators
