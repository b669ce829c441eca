#pragma once
#include <armadillo>
#include <cstddef>
#include <vector>

#include "sim/kv/kv_dump.hpp"
#include "sim/kv/rope.hpp"
#include "sim/random/address.hpp"

namespace spiked::sim {

/// How a study looks at a dump. Both leave every token's row norm as it is.
struct DumpView {
    bool undo_rotary = false;  ///< keys as they were before the rotary embedding; values are as they are
    bool shuffle = false;      ///< tokens in random order over the whole sequence: what order alone contributes
};

/// The rotary embedding of a dump's keys, from its metadata.
struct DumpRotary {
    Rope rope = {};
    double position_start = 0.0;
};
/// Throws input_error naming the metadata key when the dump does not say that its keys are post-rope, with which base
/// (rope_base) and style (rope_style); position_start is 0 where it is not given.
[[nodiscard]] DumpRotary dump_rotary(const KvDump& dump);
/// The same of the metadata of a dump; `where` names it.
[[nodiscard]] DumpRotary dump_rotary(const Metadata& metadata, const std::string& where);

/// Whether the metadata say that keys are post-rope, and how: dump_rotary has an answer.
[[nodiscard]] bool has_rotary(const KvDump& dump);

/// Blocks of one head under a view. Immutable: safe to share between threads.
class DumpHead {
public:
    /// `order` addresses the shuffle. Throws like dump_rotary when the rotary embedding is to be undone.
    DumpHead(const KvDump& dump, const DumpTensor& tensor, std::size_t head, DumpView view,
             const stream::Stream& order);

    /// tokens x dim. Throws like KvDump::read_block. Cost of a shuffled block: one short read a token.
    [[nodiscard]] arma::mat read_block(std::size_t first_token, std::size_t tokens) const;

private:
    const KvDump* dump_;
    const DumpTensor* tensor_;
    std::size_t head_;
    std::optional<DumpRotary> rotary_;
    std::vector<std::size_t> order_;  ///< empty: as they are
};

}  // namespace spiked::sim
