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
/// Every sequence of whole blocks takes B bits per entry within .75 % from the fourth on, with all that is stored for
/// it, except where the rows of a block take few bits at any step. Later blocks are not known when one is coded, so
/// that each has a step of its own, 16 bits beside its length. The first block, whose basis is not known yet, takes
/// about as much more than B as it would with one step for six: 14 to 54 %. The next three repay that, and later ones
/// the deviation so far over a quarter of the blocks so far. A step is kept while its block takes what is due within
/// .03 B; no block after the first aims below B / 2 or above 3 B / 2. METHODS, "Causal transform coding".
class CausalStream {
public:
    /// `first_block`: its rows, for the choice of the step and for the first token. `group`: one head and its queries.
    /// Fewer than 128 rows are taken to be the whole sequence, of B bits per entry. Cost: 2.5 blocks are coded up to 10
    /// times, mostly 3; later a block up to 10 times, mostly 1 or 2.
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
    std::size_t blocks_ = 0;  ///< coded so far
    double debt_ = 0.0;       ///< bits stored so far beyond B per entry
};

}  // namespace spiked::estimators
