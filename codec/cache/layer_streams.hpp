#pragma once
#include <armadillo>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "estimators/caches/causal_stream.hpp"
#include "sim/llama/llama.hpp"

namespace spiked::codec {

/// Codes the cache of one sequence by a causal method while its tokens arrive. The heads that the method joins (each
/// alone, several of a side, or keys and values of a layer) are coded by a CausalStream, a block of 128 tokens from the
/// blocks before it: keys without their rotary embedding, weighted by the queries of the first block.
class LayerStreams {
public:
    /// `tokens`: those that will be coded, for the steps of the streams; 0: not known.
    LayerStreams(const sim::LlamaConfig& model, const estimators::CacheMethod& method, std::size_t tokens = 0)
        : model_(model), method_(method), tokens_(tokens) {}

    /// Keeps the queries of the first block and the token ids of all, which a forward pass shows before a block is
    /// coded.
    void note(const sim::LayerBlock& at);

    /// Bits per entry of keys and of values; none: they stay exact. Equal where the method joins both.
    struct Bits {
        std::optional<double> keys, values;
    };
    struct Coded {
        sim::LayerRows rows;   ///< as a decoder has them, and the others exact
        double bits = 0.0;     ///< that were stored
        double entries = 0.0;  ///< that were coded
    };
    /// The next block of a layer. Throws what CausalStream throws, with the place in front.
    [[nodiscard]] Coded code(std::size_t layer, std::size_t first_token, const sim::LayerRows& exact, const Bits& bits);

    /// The memory that a layer takes: its encoders and decoders, and the queries of its first block.
    [[nodiscard]] double expected_bytes(const Bits& bits) const;

private:
    using Head = std::pair<sim::Side, std::size_t>;
    using Part = std::vector<Head>;  ///< heads that are coded together, keys first
    [[nodiscard]] std::vector<Part> parts(const Bits& bits) const;
    [[nodiscard]] arma::span columns(std::size_t head) const;
    [[nodiscard]] std::vector<arma::mat> queries_of(std::size_t layer, const Part& part) const;
    [[nodiscard]] estimators::CausalStream begun(std::size_t layer, const Part& part, const arma::mat& rows,
                                                 double bits, estimators::TokenIds ids) const;

    sim::LlamaConfig model_;
    estimators::CacheMethod method_;
    std::size_t tokens_;
    std::map<std::pair<std::size_t, Head>, std::shared_ptr<estimators::CausalStream>>
        streams_;                                      ///< by layer and first head
    std::map<std::size_t, arma::fmat> first_queries_;  ///< by layer
    std::vector<std::int32_t> ids_;                    ///< of the tokens so far
};

}  // namespace spiked::codec
