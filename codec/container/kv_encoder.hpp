#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/container/block_coder.hpp"
#include "codec/container/kv_container.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::codec {

struct EncodePlan {
    std::string dump;
    std::string output;
    estimators::MethodSpec method;
    std::optional<estimators::CacheMethod> cache;  ///< in place of `method`: causal_cache
    double bits = 4;
    std::size_t block_tokens = 128;  ///< no effect on a cache method
    std::size_t threads = 0;         ///< 0: all threads of the machine; the output does not depend on it
    sim::DumpOptions dump_options;
    estimators::QuantizerOptions quantizer;
    CodecProgress progress;
    std::shared_ptr<BlockCoder> coder;  ///< codes the blocks that it supports; null: the CPU codes all blocks
};

/// Contents and size of a container.
struct EncodeSummary {
    std::uint64_t bytes = 0;                       ///< size of the file
    std::size_t tensors = 0;                       ///< coded tensors
    std::uint64_t blocks = 0;                      ///< coded blocks, all of them full; joined heads are one
    std::uint64_t device_blocks = 0;               ///< of these, coded by the block coder
    std::size_t block_tokens = 0;                  ///< of a full block; with a cache method, of the longest sequence
    std::uint64_t entries = 0;                     ///< entries of coded tensors, including those stored in fp16
    std::size_t kept_tensors = 0;                  ///< tensors that are stored unchanged
    std::uint64_t kept_bytes = 0;                  ///< bytes of these tensors
    std::uint64_t window_tokens = 0;               ///< tokens in fp16 that fill no block, over tensors and heads
    estimators::Ledger ledger;                     ///< of everything except kept_bytes
    std::optional<double> paper_bits, mean_rank;   ///< means over full blocks; no value if there are none
    std::vector<std::string> notes;                ///< what was decided on reading the dump, a sentence each
    std::optional<double> key_error, value_error;  ///< mean over full blocks of each head of ||X - X^||_F / ||X||_F

    [[nodiscard]] double bits_per_entry() const {
        return static_cast<double>(ledger.total()) / static_cast<double>(entries);
    }
};

/// Codes the keys and values of a dump into a container (kv_container.hpp). Where a stored tensor holds several layers,
/// sides or sequences, or tokens are left out, the container has a tensor of head,token,dim for each layer and side.
/// Queries and tensors outside the cache are stored unchanged. A block coder computes in float, so a norm or coordinate
/// next to a decision threshold may get the neighbouring code. Rotations, and hence errors, are those of a dump study
/// with the same dump, seed and block size. Memory: some blocks per thread and the compressors of the heads in the
/// batch, independent of the length of the dump, but for cache methods, which need all tokens of these heads. Throws
/// usage_error; input_error that names tensor, head and block; output_error.
[[nodiscard]] EncodeSummary encode_dump(const EncodePlan& plan);

}  // namespace spiked::codec
