#pragma once
#include <cstddef>

#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// Answers every question of the store from the stored moments and replaces the verdicts. The declared false-alarm rate
/// is divided among all questions. The negative control is the question's interval, moved to the number that the
/// planted defect predicts. A check whose negative control passes has failed, because it cannot detect the planted
/// defect; a pass whose control is inconclusive becomes inconclusive.
void judge(Database& store);

/// Shows the store to this connection as if its false-alarm rate were this one, and answers its questions, if it has
/// any, again. The file stays as it is. Throws usage_error for a part of a study that has questions.
void judge_at_rate(Database& store, double false_alarm);

/// judge_at_rate for a command that shows verdicts. Throws usage_error also where there is nothing to judge: where the
/// store holds neither checks nor claims.
void judge_again(Database& store, double false_alarm);

/// SQL: the cell that the row `v` of table verdict judges, by the label of the row `c` of table cell; for a verdict on an
/// exponent also the quantity whose exponent it is.
inline constexpr const char* judged_cell =
    "CASE WHEN v.exponent_of IS NULL THEN c.label ELSE 'exponent of ' || v.exponent_of || ' up to ' || c.label END";

/// Numbers of verdicts of a store.
struct VerdictCounts {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t inconclusive = 0;
};
[[nodiscard]] VerdictCounts count_verdicts(Database& store);

}  // namespace spiked::validation
