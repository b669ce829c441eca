#pragma once
#include <armadillo>
#include <cstdint>
#include <vector>

#include "estimators/caches/causal_group.hpp"

namespace spiked::estimators {

/// causal-klt or causal-klt-joint of the heads of a group while their tokens arrive, in blocks of 128; only the last
/// may have fewer.
///
/// Later blocks are not known when one is coded, so that each has a step of its own, 16 bits beside its length. The
/// first block, whose basis is not known yet, takes about as much more than B as it would with one step for the whole
/// sequence; the next blocks repay that. A step is kept while its block takes what is due within .03 B; no block after
/// the first aims below B / 2 or above 3 B / 2.
///
/// Where the number of tokens is known, all of them together take B bits per entry within 1 %, with all that is stored
/// for them. Otherwise the step is planned for six blocks: the first takes 14 to 54 % more than B, the next three repay
/// that, later ones the deviation so far over a quarter of the blocks so far, and sequences of whole blocks take B
/// within .75 % from the fourth block on. Rows that take few bits at any step take less. METHODS, "Causal transform
/// coding". A copy goes on apart from the original, as beams of one text do.
class CausalStream {
public:
    /// `first_block`: its rows, channels of a head beside those of another, for the choice of the step and for the
    /// first token. `heads`: of which the channels are, and their queries. `tokens`: those of the whole sequence, 0
    /// where it is not known; blocks after them are coded as if it were not. Fewer than 128 rows are taken to be the
    /// whole sequence. Cost: 2.5 blocks are coded up to 10 times, mostly 3; later a block up to 10 times, mostly 1
    /// or 2.
    CausalStream(const CacheMethod& method, double bits, const arma::mat& first_block, const CacheGroup& heads,
                 std::size_t tokens = 0);

    /// The rows of the next block as a decoder returns them; adds the bits that are stored for them, with those of the
    /// header before the first block. `ids`: the token ids of the rows, where the method needs them.
    [[nodiscard]] arma::mat code(const arma::mat& rows, double& bits, TokenIds ids = {});
    /// The header of the CausalEncoder.
    [[nodiscard]] const std::vector<std::uint8_t>& header() const { return encoder_.header(); }

private:
    CausalStream(const CausalGroup& group, double bits, const arma::mat& first_block, std::size_t tokens);
    [[nodiscard]] double due(std::size_t channels) const;

    double bits_;
    std::size_t tokens_;  ///< of the sequence, or 0
    CausalEncoder encoder_;
    CausalDecoder decoder_;
    std::size_t blocks_ = 0;  ///< coded so far
    double debt_ = 0.0;       ///< bits stored so far beyond B per entry
};

}  // namespace spiked::estimators
