#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

struct ProductQuantizerOptions {
    std::size_t length = 0;  ///< entries of a sub-vector; 0: 8 / bits
    ScalarOptions norms;
};

/// Product quantization: rows of unit variance are cut into sub-vectors of `length` entries, each coded by the nearest
/// of 2^(B length) centroids that k-means finds on the block itself and that are stored with it.
///
/// Source: Jegou et al. 2011. Stored: row norms, centroids in fp16, indices of B length bits, sub-vector after
/// sub-vector of all rows. Length 0 stands for the largest length with indices of at most 8 bits: 8, 4, 2, 2, 1.. at 1,
/// 2, 3, 4, 5.. bits. An incomplete last sub-vector is padded with zeros; there are never more centroids than
/// sub-vectors in the block. Unlike in the source, all positions share one codebook (one each would take more bits than
/// the block), rows are normalised, and nothing is trained in advance: at 128 x 128 and 2 bits the 256 centroids of 4
/// entries cost 1 bit per entry. Lloyd's iteration starts from distinct sub-vectors of the block and takes at most 25
/// rounds. Cost: 25 2^(B length) multiplications per entry.
[[nodiscard]] RowQuantizer product_quantizer(std::size_t dimension, unsigned bits,
                                             const ProductQuantizerOptions& options);

}  // namespace spiked::estimators
