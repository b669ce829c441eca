#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"
#include "validation/claims/claim_verdicts.hpp"
#include "validation/claims/selftest.hpp"

namespace spiked::reports {

/// Judged claims for a terminal: a line each, then what failed and what is open. `details` adds every criterion with
/// its controls.
[[nodiscard]] std::string claims_text(const validation::Validation& validation, bool details);

/// `spiked.validate/1`.
[[nodiscard]] Json claims_json(const validation::Validation& validation);

/// One test case a claim; open ones are skipped cases.
[[nodiscard]] std::string claims_junit(const validation::Validation& validation);

/// A page to read and to cite: statement, verdicts, evidence, corrected statement. `origin` says what made it.
[[nodiscard]] std::string claims_markdown(const validation::Validation& validation, std::string_view origin);

/// What such pages are made of, on whatever they are written. The title of a claim: `one-bit-saved`, or
/// `one-bit-saved on a.safetensors`.
[[nodiscard]] std::string claim_title(const validation::ClaimOutcome& claim);
/// How verdicts, controls and intervals are to be read.
[[nodiscard]] std::string how_claims_read(const validation::Validation& validation);
/// The verdict on the corrected form; empty where there is none.
[[nodiscard]] std::string_view corrected_word(const validation::ClaimOutcome& claim);
/// The evidence of a claim, row by row: form, measured, where, value, allowed, detectable, verdict.
[[nodiscard]] std::vector<std::vector<std::string>> evidence_rows(const validation::ClaimOutcome& claim);

/// What the self-test found: a line a defect and a calibration.
[[nodiscard]] std::string selftest_text(const validation::Selftest& selftest);
/// `spiked.selftest/1`.
[[nodiscard]] Json selftest_json(const validation::Selftest& selftest);

}  // namespace spiked::reports
