#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "estimators/compressors/compressor.hpp"

namespace spiked::estimators {

/// A method at one bit width for the full blocks of one head. If a method keeps the last tokens of a sequence in full
/// precision (KIVI's residual), these are the tokens at the end of the sequence, wherever its blocks are cut. The
/// tokens of a partial last block, which no method codes, count towards them.
class HeadCodec {
public:
    /// `options` with the axis and the rotation of the head.
    HeadCodec(const estimators::MethodSpec& method, std::size_t dimension, double bits,
              estimators::QuantizerOptions options, std::size_t tokens, std::size_t block_tokens);

    /// The compressor of a full block.
    [[nodiscard]] const estimators::Compressor& of(std::size_t block) const;

private:
    [[nodiscard]] std::size_t kept_of(std::size_t block) const;

    std::size_t tokens_;
    std::size_t block_tokens_;
    std::size_t tail_;
    std::map<std::size_t, estimators::Compressor> by_kept_;  ///< by the number of rows of a block that are in the tail
};

/// Tokens that do not fill a block, in fp16, channel after channel. Throws input_error for numbers beyond the range of
/// fp16.
[[nodiscard]] estimators::Encoded keep_rows(const arma::mat& rows);
[[nodiscard]] arma::mat kept_rows(std::span<const std::uint8_t> bytes, std::size_t tokens, std::size_t dimension);

}  // namespace spiked::estimators
