#pragma once
#include <armadillo>
#include <cstdint>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/causal/causal_codec.hpp"

namespace spiked::estimators {

/// The options in the name of causal-klt or causal-klt-joint. Where it names no `update`, this is the default, or what
/// so many columns need.
[[nodiscard]] CausalOptions causal_options(const NameOptions& own, std::size_t columns);

/// causal-klt of one head while its tokens arrive, in blocks of 128; only the last may have fewer.
///
/// Later blocks are not known when one is coded, so that each has a step of its own, 16 bits beside its length: the one
/// at which the block takes B bits per entry with all that is stored for it, the first one with the header. A sequence
/// of whole blocks then takes B up to a half per cent or so, except where a header of 16 bits for each channel leaves
/// nothing of B, and where rows that predict each other exactly take less.
class CausalStream {
public:
    /// `first_block`: its rows, for the choice of the step and for the first token. `group`: one head and its queries.
    /// Cost: each block is coded up to 10 times, mostly 3.
    CausalStream(const CacheMethod& method, double bits, const arma::mat& first_block, const CacheGroup& group);

    /// The rows of the next block as a decoder returns them; adds the bits that are stored for them, with those of the
    /// header before the first block.
    [[nodiscard]] arma::mat code(const arma::mat& rows, double& bits);
    /// That of a CausalEncoder.
    [[nodiscard]] const std::vector<std::uint8_t>& header() const { return encoder_.header(); }

private:
    double bits_;
    CausalOptions options_;
    CausalShape shape_;
    CausalEncoder encoder_;
    CausalDecoder decoder_;
    bool first_ = true;
};

}  // namespace spiked::estimators
