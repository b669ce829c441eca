#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "estimators/causal/causal_basis.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "estimators/causal/dependent_quantizer.hpp"
#include "estimators/causal/index_model.hpp"
#include "estimators/causal/same_token.hpp"

namespace spiked::estimators {

/// What changes from token to token within a basis, the same in encoder and decoder.
struct ChannelTracker {
    /// The variances of residuals, and the number of tokens that they stand for.
    struct Spread {
        std::vector<double> variance{};
        double weight = 0.0;
    };
    Spread fresh{};
    Spread repeated{};           ///< of tokens whose id has occurred before, where they are predicted from that
    std::vector<double> last{};  ///< the token before, in channels
    std::uint8_t trellis = 0;
    IndexModel model;
};

/// The state of causal transform coding: decoded moments, the present basis, and what follows the tokens. Encoding and
/// decoding pass through the same code for all of it.
class CausalState {
public:
    CausalState(const CausalOptions& options, double step, std::vector<double> factors, arma::rowvec sink);

    [[nodiscard]] arma::mat encode(const arma::mat& rows, TokenIds ids, std::vector<std::uint8_t>& bytes);
    [[nodiscard]] arma::mat decode(std::span<const std::uint8_t> bytes, std::size_t rows, TokenIds ids);
    /// The step of the blocks that follow.
    void set_step(double step) {
        step_ = step;
        moments_.set_step(step);
    }
    [[nodiscard]] bool frozen() const { return !options_.live && tokens_ >= options_.freeze; }
    [[nodiscard]] arma::mat decode_frozen(std::span<const std::uint8_t> bytes, std::size_t rows) const;
    [[nodiscard]] std::size_t bytes() const;

private:
    /// The numbers by which a token's indices are chosen or read, and the place where they go.
    struct Token {
        std::size_t number;  ///< within the block
        std::span<const double> prediction;
        std::span<const std::uint8_t> classes;
        std::span<std::int64_t> levels;  ///< residuals in steps
    };
    using CodeToken = std::function<void(const Token&, ChannelTracker&)>;

    /// The next block: `begin_basis` is called with the range of its tokens that are coded in the present basis.
    arma::mat next_block(std::size_t rows, TokenIds ids,
                         const std::function<void(std::size_t, std::size_t)>& begin_basis, const CodeToken& code_token);
    /// The tokens from `first` to `end` of a block in decoded channels.
    RowMatrix code_tokens(std::size_t first, std::size_t end, ChannelTracker& tracker,
                          const CodeToken& code_token) const;
    void encode_token(std::span<const double> channels, const Token& token, ChannelTracker& tracker,
                      RangeEncoder& encoder);
    void decode_token(const Token& token, ChannelTracker& tracker, RangeDecoder& decoder) const;

    [[nodiscard]] RowMatrix scaled(const arma::mat& rows) const;
    [[nodiscard]] RowMatrix rows_of(const RowMatrix& channels) const;
    void unscale_into(const RowMatrix& rows, std::size_t first, arma::mat& block) const;
    [[nodiscard]] bool updates_at(std::size_t token) const;
    void require_next(std::size_t rows) const;
    void renew_basis();

    CausalOptions options_;
    double step_;
    std::vector<double> factors_;
    arma::rowvec sink_;
    std::size_t tokens_ = 0;
    DecodedMoments moments_;
    ChannelBasis basis_;
    std::optional<SameTokens> same_;  ///< where tokens are predicted from the last one of the same id
    SameTokenPredictors predictors_;  ///< without same_ only that of fresh tokens
    ChannelTracker tracker_;
    ChannelTracker frozen_;  ///< what every block after the freeze begins with
    DependentQuantizer quantizer_;
    std::vector<double> residuals_;
    std::vector<std::int64_t> indices_;
};

}  // namespace spiked::estimators
