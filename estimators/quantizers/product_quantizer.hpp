#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

struct ProductQuantizerOptions {
    std::size_t length = 0;  ///< entries of a sub-vector; 0: 8 / bits
    ScalarOptions norms;
};

/// Product quantization: rows of unit variance cut into sub-vectors of `length` entries, each coded by the nearest of
/// 2^(B length) centroids that k-means finds on the block itself and that are stored with it.
///
/// Source: Jegou et al. 2011. Stored: row norms, centroids in fp16, indices of B length bits, sub-vector after
/// sub-vector of all rows. length 0 stands for the longest with indices of 8 bits at most: 8, 4, 2, 2, 1.. at 1, 2, 3,
/// 4, 5.. bits. A last sub-vector is filled with zeros; there are no more centroids than sub-vectors in the block.
/// Unlike its source all positions share one codebook (one each would outweigh a block), rows are normalised, and
/// nothing is trained beforehand: at 128 x 128 and 2 bits the 256 centroids of 4 entries cost 1 bit an entry. Lloyd's
/// iteration from distinct sub-vectors of the block, at most 25 rounds. Cost: 25 2^(B length) multiplications an entry.
[[nodiscard]] RowQuantizer product_quantizer(std::size_t dimension, unsigned bits,
                                             const ProductQuantizerOptions& options);

}  // namespace spiked::estimators
