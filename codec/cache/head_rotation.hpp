#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/text/json.hpp"

namespace spiked::codec {

/// What a cell of a dump study is: all full blocks of one head of one tensor. Its hash is the cell's.
[[nodiscard]] Json head_identity(const std::string& dump_sha256, const std::string& tensor, std::size_t head,
                                 std::size_t block_tokens);
/// Which rotation of the seed the blocks of a head get, from its identity: one of its own for each head of each file,
/// because clusters that share a rotation would leave its part of the spread out.
[[nodiscard]] std::uint64_t rotation_of(const Json& identity);

}  // namespace spiked::codec
