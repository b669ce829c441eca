#include "validation/head_codec.hpp"

#include <algorithm>

namespace spiked::validation {

HeadCodec::HeadCodec(const estimators::Method& method, std::size_t dimension, double bits,
                     estimators::QuantizerOptions options, std::size_t tokens, std::size_t block_tokens)
    : tokens_(tokens), block_tokens_(block_tokens), tail_(estimators::kept_tail(method.quantizer, options, tokens)) {
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

}  // namespace spiked::validation
