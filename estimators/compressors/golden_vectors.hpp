#pragma once
#include <optional>
#include <string>

#include "core/text/json.hpp"

namespace spiked::estimators {

/// Test vectors for other programs that write or read these codes, `spiked.golden/1`: every row quantizer at 1 to 4
/// bits on small inputs, with a Haar rotation and without one; every rotation, norm format and codebook once; `svd:1`
/// before a quantizer with each codebook of factors.
///
///     {"schema": "spiked.golden/1", "note": ..,
///      "matrices": {"haar:8": rows of R, "projection:gaussian:8": rows of factor S, ..},
///      "vectors": [{"name", "method", "bits", "options": {rotation, codebook, norm, group, axis, residual,
///                   factor_bits, factor_codebook, seed, rotation_index}, "matrices": [names], "rows", "columns",
///                   "input": rows, "encoded": hex, "decoded": rows}]}
///
/// A coordinate of a rotated row x is (R x)_i; a sign of a sketch is that of (factor S x)_i, and a row is decoded as
/// norm factor S^T sign.
[[nodiscard]] Json golden_vectors();
/// The document as a file with one matrix or vector per line.
[[nodiscard]] std::string golden_text(const Json& document);

/// Compares a document with the results of this program: bytes exactly, numbers to 1e-9 of the largest in their matrix.
/// The bytes of a composition depend on the sign of a singular vector, so there the given bytes are decoded and the
/// decoded values compared. Returns the first difference with the name of its vector; nothing when there is none.
/// Throws input_error, with `where` in front, when the document is not a valid set of vectors.
[[nodiscard]] std::optional<std::string> golden_difference(const Json& given, const std::string& where);

}  // namespace spiked::estimators
