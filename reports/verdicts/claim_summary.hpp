#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "validation/verdicts/claim_verdicts.hpp"

namespace spiked::reports {

/// One line about a claim, or about a claim on all dumps of a run.
struct SummaryRow {
    std::string claim;
    std::string says;      ///< the statement in words
    std::string measured;  ///< the number that decides, with its meaning and its size
    std::string allowed;   ///< the margin in words
    std::string closest;   ///< the largest fault that would not fail; what passes too for a vacuous claim
};

struct SummaryGroup {
    std::string title;
    std::vector<SummaryRow> rows;
};

/// The loss of a user of the method, with numbers of the run.
struct SummaryLoss {
    std::string title;
    std::string text;
    std::string source;  ///< claims and criteria that the numbers are from
};

/// A run of `spiked validate` in short: a line for each claim, grouped by kind, and what is lost in practice. All
/// numbers are from the run or from the notes of the claims; a loss is left out where the run lacks its claims.
struct ClaimSummary {
    std::string tier;     ///< a sentence on the tier and what it leaves out
    std::string reading;  ///< what the columns and the names of noise mean
    std::vector<SummaryGroup> groups;
    std::vector<SummaryLoss> losses;
};
[[nodiscard]] ClaimSummary summary_of(const validation::Validation& validation);

/// The summary as Markdown. `origin` is the sentence that names the program and the command which made it.
[[nodiscard]] std::string summary_markdown(const ClaimSummary& summary, std::string_view origin);

inline constexpr std::string_view summary_title = "The paper's statements in short";
inline constexpr std::string_view losses_title = "What one loses in practice";
/// Headings of the columns of a group.
inline constexpr std::string_view summary_columns[] = {"claim", "in words", "measured", "allowed",
                                                       "largest fault that would not fail"};

}  // namespace spiked::reports
