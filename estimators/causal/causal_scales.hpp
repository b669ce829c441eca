#pragma once
#include <armadillo>
#include <cstdint>
#include <span>
#include <vector>

#include "estimators/causal/causal_codec.hpp"

namespace spiked::estimators {

/// Scales of columns for CausalSettings, in sixteenths of an octave and within -128 to 127. They decide which errors a
/// code makes, and are stored; a decoder needs nothing of what they were computed from.

/// Weights of one head's keys by its queries: an error of a rotary pair (coordinates i and i + d/2) costs logits its
/// square times the mean square g(i) of the queries there, and the weight g^(1/4) halves this on a logarithmic scale.
/// `queries` are those of the first block of all query heads that share the keys, without their rotary embedding, one
/// per row. Returns d/2 exponents of mean 0, up to rounding; the weights of pairs that queries do not use are bounded
/// by a thousandth of the mean of g. Throws usage_error for an odd or zero number of columns, input_error for entries
/// that are not finite.
[[nodiscard]] std::vector<std::int8_t> query_exponents(const arma::mat& queries);

/// Heads that are joined, channels beside channels: heads of keys, then heads of values, of `dimension` channels each.
struct JoinedHeads {
    std::size_t keys = 0;
    std::size_t values = 0;
    std::size_t dimension = 0;
};
/// The scales are dimension/2 for each head of keys, then one for each head of values. Throws usage_error for an odd or
/// zero dimension where there are keys.
[[nodiscard]] CausalShape joined_shape(const JoinedHeads& heads);
/// The exponents of that shape: each head of keys, after its weights, and each head of values gets the mean standard
/// deviation 1 over `rows`, those of the first block without the sink. `weights` is the list of query_exponents of all
/// heads of keys, or empty for none.
[[nodiscard]] std::vector<std::int8_t> joined_exponents(const arma::mat& rows, const JoinedHeads& heads,
                                                        std::span<const std::vector<std::int8_t>> weights);

}  // namespace spiked::estimators
