#pragma once
#include <string>
#include <string_view>

#include "theory/base/json.hpp"
#include "validation/claim_verdicts.hpp"
#include "validation/selftest.hpp"

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

/// The same as one self-contained HTML page.
[[nodiscard]] std::string claims_html(const validation::Validation& validation, std::string_view origin);

/// What the self-test found: a line a defect and a calibration.
[[nodiscard]] std::string selftest_text(const validation::Selftest& selftest);
/// `spiked.selftest/1`.
[[nodiscard]] Json selftest_json(const validation::Selftest& selftest);

}  // namespace spiked::reports
