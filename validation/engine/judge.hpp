#pragma once
#include <cstddef>

#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// Answers every question of the store from the stored moments and replaces the verdicts. The declared false-alarm rate
/// is divided among all questions. The negative control is the question's interval, moved to the number that the
/// planted defect predicts. A check whose negative control passes has failed, because it cannot detect the planted
/// defect; a pass whose control is inconclusive becomes inconclusive.
void judge(Database& store);

/// Shows the store to this connection as if its false-alarm rate were this one, and answers its questions again. The
/// file stays as it is. Throws usage_error where the store holds neither checks nor claims.
void judge_again(Database& store, double false_alarm);

/// Numbers of verdicts of a store.
struct VerdictCounts {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t inconclusive = 0;
};
[[nodiscard]] VerdictCounts count_verdicts(Database& store);

}  // namespace spiked::validation
