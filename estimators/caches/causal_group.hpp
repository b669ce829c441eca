#pragma once
#include <armadillo>
#include <cstdint>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "estimators/causal/causal_scales.hpp"

namespace spiked::estimators {

/// The options in the name of causal-klt or causal-klt-joint. Where it names no `update`, this is the default, or what
/// so many columns need.
[[nodiscard]] CausalOptions causal_options(const NameOptions& own, std::size_t columns);

/// The heads whose channels causal-klt or causal-klt-joint codes beside each other: what is known of them before their
/// tokens.
struct CausalGroup {
    CausalOptions options;
    JoinedHeads heads;
    std::vector<std::vector<std::int8_t>> weights;  ///< of the heads of keys; empty: none

    std::vector<std::int32_t> ids;  ///< as in CacheGroup

    /// Throws precondition_error where the channels are not those of whole heads, and usage_error where the method
    /// needs token ids and there are none.
    CausalGroup(const CacheMethod& method, std::size_t channels, const CacheGroup& group);

    [[nodiscard]] bool joins() const { return heads.keys + heads.values > 1; }
    /// Whether an encoder scales columns: heads that are joined to equal spread, keys by their weights.
    [[nodiscard]] bool scales() const { return joins() || !weights.empty(); }
    [[nodiscard]] CausalShape shape(bool scaled) const;
    [[nodiscard]] CausalShape shape() const { return shape(scales()); }
    /// The scales of a sequence of these rows, chosen on the first 128; none without scales.
    [[nodiscard]] std::vector<std::int8_t> exponents(const arma::mat& rows) const;
    /// The bytes of the codec's header: step, exponents, first token.
    [[nodiscard]] std::size_t header_size(const CausalShape& shape) const;
};

}  // namespace spiked::estimators
