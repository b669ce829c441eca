#pragma once
#include <cstddef>
#include <cstdint>

namespace spiked::sim {

/// A needle of a retrieval test: a key token and a value token in the context, and a later question that should be
/// answered with the value.
struct Needle {
    std::size_t key_at = 0, value_at = 0;  ///< positions of the two tokens
    std::size_t asked_at = 0;              ///< position of the token whose next-token prediction is the answer
    std::int32_t answer = 0;
};

}  // namespace spiked::sim
