#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/text/json.hpp"

namespace spiked::codec {

/// Identity of one head of one tensor of a dump, with all of its full blocks. In a dump study this is a cell: the hash
/// of this object is the cell's hash.
[[nodiscard]] Json head_identity(const std::string& dump_sha256, const std::string& tensor, std::size_t head,
                                 std::size_t block_tokens);
/// Index of the random rotation that the blocks of a head use, computed from the head's identity. Each head of each
/// file has its own rotation: if clusters shared one, the standard error between clusters would not contain the
/// variance that rotations cause.
[[nodiscard]] std::uint64_t rotation_of(const Json& identity);

}  // namespace spiked::codec
