#include "estimators/compressors/head_codec.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/fp16_entries.hpp"

namespace spiked::estimators {

HeadCodec::HeadCodec(const estimators::MethodSpec& method, std::size_t dimension, double bits,
                     estimators::QuantizerOptions options, std::size_t tokens, std::size_t block_tokens)
    : tokens_(tokens), block_tokens_(block_tokens), tail_(method.quantizer.kept_tail(options, tokens)) {
    for (std::size_t block = 0; block < tokens / block_tokens; ++block) {
        const std::size_t kept = kept_of(block);
        if (by_kept_.contains(kept)) continue;
        options.kept = kept;
        by_kept_.try_emplace(kept, method, dimension, bits, options);
    }
}

std::size_t HeadCodec::kept_of(std::size_t block) const {
    const std::size_t end = (block + 1) * block_tokens_;
    const std::size_t coded = tokens_ - tail_;
    return end <= coded ? 0 : std::min(end - coded, block_tokens_);
}

const estimators::Compressor& HeadCodec::of(std::size_t block) const { return by_kept_.at(kept_of(block)); }

estimators::Encoded keep_rows(const arma::mat& rows) {
    estimators::BitWriter writer;
    estimators::write_fp16(writer, estimators::Item::residual_window, {rows.memptr(), rows.n_elem},
                           "entry of the last tokens", "choose a --block that leaves no tokens over or scale the data");
    const estimators::Ledger ledger = writer.ledger();
    return {writer.take_bytes(), ledger};
}

arma::mat kept_rows(std::span<const std::uint8_t> bytes, std::size_t tokens, std::size_t dimension) {
    if (bytes.size() != 2 * tokens * dimension)
        throw input_error("{} bytes of last tokens are expected but {} were found: the data is damaged",
                          2 * tokens * dimension, bytes.size());
    estimators::BitReader reader(bytes);
    arma::mat rows(tokens, dimension);
    for (double& entry : rows) entry = estimators::decode_number(reader.read(16), estimators::NumberFormat::fp16);
    return rows;
}

}  // namespace spiked::estimators
