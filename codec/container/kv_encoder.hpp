#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "codec/container/block_coder.hpp"
#include "codec/container/kv_container.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::codec {

struct EncodePlan {
    std::string dump;
    std::string output;
    std::string method;
    double bits = 4;
    std::size_t block_tokens = 128;
    std::size_t threads = 0;  ///< 0: all the machine has; never changes a byte
    sim::DumpOptions dump_options;
    estimators::QuantizerOptions quantizer;
    CodecProgress progress;
    std::shared_ptr<BlockCoder> coder;  ///< of the blocks that it can code; null: the CPU codes all
};

/// What a container holds and what it costs.
struct EncodeSummary {
    std::uint64_t bytes = 0;                       ///< of the file
    std::size_t tensors = 0;                       ///< coded
    std::uint64_t blocks = 0;                      ///< full ones, coded
    std::uint64_t device_blocks = 0;               ///< of them, by the block coder
    std::uint64_t entries = 0;                     ///< of coded tensors, those kept in fp16 among them
    std::size_t kept_tensors = 0;                  ///< stored as they are
    std::uint64_t kept_bytes = 0;                  ///< of them
    std::uint64_t window_tokens = 0;               ///< kept in fp16 because they fill no block, over tensors and heads
    estimators::Ledger ledger;                     ///< of everything but kept_bytes
    std::optional<double> paper_bits, mean_rank;   ///< means over full blocks; nothing without one
    std::optional<double> key_error, value_error;  ///< mean over full blocks of ||X - X^||_F / ||X||_F

    [[nodiscard]] double bits_per_entry() const {
        return static_cast<double>(ledger.total()) / static_cast<double>(entries);
    }
};

/// Codes the keys and values of a dump into a container (kv_container.hpp); queries and what lies outside the cache are
/// kept as they are. What a block coder codes it codes in float: where a norm or a coordinate lies beside a threshold,
/// its neighbour may be stored. Rotations, and so the errors, are those of a dump study of the same dump, seed and
/// block. Memory: some blocks a thread and the compressors of the heads at work, however long the dump. Throws
/// usage_error, input_error naming tensor, head and block, write_error.
[[nodiscard]] EncodeSummary encode_dump(const EncodePlan& plan);

}  // namespace spiked::codec
