#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

struct KvquantOptions {
    GroupAxis axis = GroupAxis::value;
    double outliers = 0.01;  ///< fraction of the entries of a vector that are stored in fp16
    ScalarOptions scales;
};

/// KVQuant: non-uniform levels on vectors scaled to [-1, 1]; the outermost entries of every vector are stored in fp16.
///
/// Source: Hooper et al., "KVQuant", 2024. A vector is a channel (axis key) or a token (axis value) of the block. Of a
/// vector of m entries the k = round(m `outliers` / 2) smallest and as many largest are stored in fp16 with their
/// positions; the others are (x - centre) / half range, coded by the nearest of 2^B levels that Lloyd's iteration finds
/// on the block. Stored: centres (ledger: zeros) and half ranges (scales) in the format of the options, levels in fp16,
/// codes of all entries, coordinate after coordinate (an outlier has code 0), then the outliers of each vector:
/// position in ceil(log2 m) bits, value. Bits B + (2 f + 2 k (16 + log2 m)) / m + 2^B 16 / (n d). With enough bits it
/// is exact up to formats. Not implemented: levels calibrated offline with Fisher weights (here levels are fitted to
/// the block and counted), and storing the first token unquantized; keys before the rotary embedding are
/// `unrope+kvquant`. Throws input_error for NaN, infinity, or a number that the format cannot store.
[[nodiscard]] RowQuantizer kvquant(std::size_t dimension, unsigned bits, const KvquantOptions& options);

}  // namespace spiked::estimators
