#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"
#include "validation/verdicts/claim_study.hpp"
#include "validation/verdicts/selftest.hpp"

namespace spiked::reports {

/// Judged claims for a terminal: one row per claim, then the failed and the open ones with their reasons. `details`
/// adds every criterion with its controls.
[[nodiscard]] std::string claims_text(const validation::Validation& validation, bool details);

/// The same for verdicts that were made from a store, and what it holds or lacks besides.
[[nodiscard]] std::string stored_claims_text(const validation::Validation& validation, bool details);

/// "2 cells that these verdicts ask for, such as second analyses of undecided claims, are not in" `where`.
[[nodiscard]] std::string lacking_cells(std::size_t count, std::string_view where);

/// JSON of schema `spiked.validate/1`.
[[nodiscard]] Json claims_json(const validation::Validation& validation);

/// JUnit XML with one test case per claim, which has its statement and the number of each criterion and control. Open
/// claims are skipped cases, and so are those named in `without_verdict`.
[[nodiscard]] std::string claims_junit(const validation::Validation& validation,
                                       const std::vector<std::string>& without_verdict = {});

/// A Markdown page with all statements and their verdicts, then the evidence of every claim. `origin` is the sentence
/// that names the program and the command which made it.
[[nodiscard]] std::string claims_markdown(const validation::Validation& validation, std::string_view origin);

// The parts that the Markdown page and the HTML page of claims have in common.

/// The title of a claim: `one-bit-saved`, or `one-bit-saved on a.safetensors`.
[[nodiscard]] std::string claim_title(const validation::ClaimOutcome& claim);
/// The name and size of the largest fault that would not fail; empty where no form holds.
[[nodiscard]] std::string closest_fault_text(const validation::ClaimOutcome& claim);
/// What the names of noise in a criterion mean: the covariances of `validation::Noise`.
inline constexpr std::string_view noise_legend =
    "Noise is A^(1/2) X B^(1/2), where entries of X have variance 1/d. White noise has A = B = I. In coloured noise A "
    "is the covariance of an AR(1) series with .5, and B is exponential: its eigenvalues are exp(-3 (j - 1/2) / d), j "
    "= 1 to d, from 1 to 1/20. Columns noise has A = I and this B.";
/// What a word in the tables of claims means.
struct LegendItem {
    std::string word;
    std::string meaning;
};
/// Explains verdicts, controls, intervals and the names of noise.
[[nodiscard]] std::vector<LegendItem> claims_legend(const validation::Validation& validation);
/// The name of its kind, empty where there is none.
[[nodiscard]] std::string_view claim_kind(const validation::ClaimOutcome& claim);
/// Text for a cell of a Markdown table. The bars of norms are escaped, because a bar would end the cell.
[[nodiscard]] std::string markdown_cell(std::string_view text);
/// The verdict on the corrected form, empty where there is no corrected form.
[[nodiscard]] std::string_view corrected_verdict(const validation::ClaimOutcome& claim);
/// The rows of the table of evidence of a claim: form, measured, where, value, allowed, detectable, verdict.
[[nodiscard]] std::vector<std::vector<std::string>> evidence_rows(const validation::ClaimOutcome& claim);

/// The result of the self-test: one row per planted defect and one per calibration.
[[nodiscard]] std::string selftest_text(const validation::Selftest& selftest);
/// JSON of schema `spiked.selftest/1`.
[[nodiscard]] Json selftest_json(const validation::Selftest& selftest);

}  // namespace spiked::reports
