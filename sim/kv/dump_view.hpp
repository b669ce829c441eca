#pragma once
#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/kv/kv_dump.hpp"
#include "sim/kv/rope.hpp"
#include "sim/random/address.hpp"

namespace spiked::sim {

/// How a study reads a dump. Neither option changes the norm of a token's row, except that undoing a rotary embedding
/// of type yarn divides it by the attention factor.
struct DumpView {
    bool undo_rotary = false;  ///< read keys as they were before the rotary embedding; values are unchanged
    bool shuffle = false;  ///< read the tokens of the sequence in random order, which shows the effect of their order
};

/// The rotary embedding of a dump's keys, from its metadata.
struct DumpRotary {
    Rope rope = {};
    double position_start = 0.0;
};
/// Throws an input_error that names the metadata key unless the dump states that its keys are post-rope, and the base
/// (rope_base) and style (rope_style); position_start is 0 where it is missing. rope_scaling is the object of a
/// config.json as JSON: read_rope_scaling says which are possible.
[[nodiscard]] DumpRotary dump_rotary(const KvDump& dump);
/// The same for the metadata of a dump; `where` names the dump in messages.
[[nodiscard]] DumpRotary dump_rotary(const Metadata& metadata, const std::string& where);

/// Whether the metadata state the rotary embedding, so that dump_rotary does not throw.
[[nodiscard]] bool has_rotary(const KvDump& dump);

/// The tensor of integers that holds the token ids of a dump: [token], or [sequence, token] of a batch.
inline constexpr const char* token_ids_name = "token_ids";
/// The ids of the tokens of a tensor that are read; empty where the dump has none. Throws input_error for a tensor of
/// this name that has another shape than the stored tokens, or entries that are no ids.
[[nodiscard]] std::vector<std::int32_t> token_ids(const KvDump& dump, const DumpTensor& tensor);

/// Reads blocks of one head under a view. It is immutable, so safe to share between threads.
class DumpHead {
public:
    /// `order` is the random stream of the shuffle. Throws like dump_rotary when view.undo_rotary is set for keys.
    DumpHead(const KvDump& dump, const DumpTensor& tensor, std::size_t head, DumpView view,
             const stream::Stream& order);

    /// A block of tokens x dim. Throws like KvDump::read_block. A shuffled block costs one short read for each token.
    [[nodiscard]] arma::mat read_block(std::size_t first_token, std::size_t tokens) const;

private:
    const KvDump* dump_;
    const DumpTensor* tensor_;
    std::size_t head_;
    std::optional<DumpRotary> rotary_;
    std::vector<std::size_t> order_;  ///< empty: the order of the dump
};

}  // namespace spiked::sim
