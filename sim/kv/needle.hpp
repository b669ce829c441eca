#pragma once
#include <cstddef>
#include <cstdint>

namespace spiked::sim {

/// A key token directly followed by a value token in a context, asked for behind it.
struct Needle {
    std::size_t key_at = 0, value_at = 0;  ///< tokens
    std::size_t asked_at = 0;              ///< token whose prediction is the answer
    std::int32_t answer = 0;
};

}  // namespace spiked::sim
