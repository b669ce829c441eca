#pragma once
#include <cstddef>

#include "validation/engine/sqlite.hpp"

namespace spiked::validation {

/// Answers every question of the store from its moments alone and replaces the verdicts. All share the declared
/// false-alarm rate. A check whose control passes has failed, because it sees nothing; a pass whose control is
/// inconclusive is inconclusive.
void judge(Database& store);

/// Verdicts of a store by kind.
struct VerdictCounts {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t inconclusive = 0;
};
[[nodiscard]] VerdictCounts count_verdicts(Database& store);

}  // namespace spiked::validation
