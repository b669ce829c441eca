#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// SVDq: the block minus its column means, in the coordinates of its right singular vectors; leading coordinates are
/// coded with more bits and the last ones are left out.
///
/// Source: Yankun et al., "SVDq", 2025. With X - mean = U S V^T the latent channels (X - mean) V form eight groups by
/// singular value, coded with these bits per entry, where each channel has its own minimum and scale over the tokens:
///   B = 1: 4 4;  2: 8 4 4;  3: 8 8 4 4;  4: 8 8 4 4 4 4;  5: 8 8 8 4 4 4 4;  6: four 8, four 4;  7: six 8, two 4;
///   8: 8.
/// Stored: means (ledger: zeros) in the format of the options, the vectors of coded channels in fp16 (factor_indices),
/// then the data of kivi on axis key, group after group. In the source the vectors serve a whole prompt; in a block of
/// n tokens they cost 16 / n bits per entry and channel, all of which are counted: 16 bits for a full basis at n = d.
/// Throws input_error for NaN, infinity, or a number that the format cannot store.
[[nodiscard]] RowQuantizer svdq(std::size_t dimension, unsigned bits, const ScalarOptions& scalars);

}  // namespace spiked::estimators
