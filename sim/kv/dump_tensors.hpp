#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/io/dtype.hpp"
#include "sim/io/tensor_container.hpp"
#include "sim/kv/cache_layout.hpp"
#include "sim/kv/dump_reading.hpp"

namespace spiked::sim {

/// The keys and values of one layer, or its queries.
struct DumpTensor {
    std::string name;  ///< as stored, with the place behind it (`kv[0,3]`) where the stored tensor holds more
    std::size_t layer = 0;
    Side side = Side::key;
    std::size_t heads = 0;
    std::size_t tokens = 0;
    std::size_t dim = 0;
    DType dtype = DType::f16;
    std::size_t index = 0;                                 ///< in the file's list of tensors, of its first part
    std::vector<StoredPart> parts;                         ///< disjoint; they cover all heads and tokens
    std::size_t first_token = 0;                           ///< stored tokens before it are left out
    std::shared_ptr<const std::vector<std::size_t>> kept;  ///< the stored tokens, if others between them are left out

    /// The stored number of a token.
    [[nodiscard]] std::size_t stored_token(std::size_t token) const {
        return kept ? kept->at(token) : first_token + token;
    }
};

/// The cache that a file holds.
struct FoundTensors {
    std::vector<DumpTensor> tensors;       ///< by layer, then key, value, query
    std::string layout;                    ///< as parse_side_layouts reads it
    std::optional<TensorLayout> plain;     ///< if every tensor is stored alone, and all in this layout
    std::size_t sequences = 1;             ///< of the batch
    std::string metadata_prefix;           ///< of keys that users gave to the program which wrote the file
    std::vector<bool> matched;             ///< by number in the file: whether the tensor belongs to the cache
    std::vector<std::size_t> block_table;  ///< empty: pages are in the order of the file
    std::vector<std::string> notes;        ///< what was decided, a sentence each
    std::string reading;                   ///< how a format that an option named was read; empty: none was
};
/// `options` completed by the metadata. Layers whose dtype or axes do not fit are left out with a note where others
/// fit. Throws input_error, which names file and tensor, and usage_error for an option without effect.
[[nodiscard]] FoundTensors find_tensors(const TensorContainer& file, const DumpOptions& options);

}  // namespace spiked::sim
