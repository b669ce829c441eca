#pragma once
#include <armadillo>
#include <cstdint>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/causal/causal_codec.hpp"

namespace spiked::estimators {

/// The options in the name of causal-klt or causal-klt-joint.
[[nodiscard]] CausalOptions causal_options(const NameOptions& own);

/// causal-klt of one head while its tokens arrive, in blocks of 128; only the last may have fewer.
///
/// The step of the sequence is chosen on the first block, because the later ones are not known: it is the one at which
/// the last quarter of that block takes B bits per entry. The three quarters before it, from which the basis is
/// learned, take more, and later blocks less, so that the rate of a sequence is near B and not at it. The same bytes as
/// encode_causal with this step.
class CausalStream {
public:
    /// `first_block`: its rows, for the choice of the step and for the first token. `group`: one head and its queries.
    /// Cost: the first block coded up to 20 times.
    CausalStream(const CacheMethod& method, double bits, const arma::mat& first_block, const CacheGroup& group);

    /// The rows of the next block as a decoder returns them; adds the bits that are stored for them, with those of the
    /// header before the first block.
    [[nodiscard]] arma::mat code(const arma::mat& rows, double& bits);
    /// That of a CausalEncoder.
    [[nodiscard]] const std::vector<std::uint8_t>& header() const { return encoder_.header(); }

private:
    CausalOptions options_;
    CausalShape shape_;
    CausalEncoder encoder_;
    CausalDecoder decoder_;
    bool first_ = true;
};

}  // namespace spiked::estimators
