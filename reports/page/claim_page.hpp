#pragma once
#include <string>
#include <string_view>

#include "reports/tables/claim_summary.hpp"
#include "validation/claims/claim_verdicts.hpp"

namespace spiked::reports {

/// The content of claims_markdown as one self-contained HTML page. `origin` names the program and command that made the
/// verdicts, and `generator` the command that made the page.
[[nodiscard]] std::string claims_html(const validation::Validation& validation, std::string_view origin,
                                      std::string_view generator = "spiked validate");

/// The content of summary_markdown as one self-contained HTML page. Printed, the losses begin a page.
[[nodiscard]] std::string summary_html(const ClaimSummary& summary, std::string_view origin);

}  // namespace spiked::reports
