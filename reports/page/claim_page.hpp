#pragma once
#include <string>
#include <string_view>

#include "validation/claims/claim_verdicts.hpp"

namespace spiked::reports {

/// What claims_markdown tells, as one self-contained HTML page. `origin` says what made it.
[[nodiscard]] std::string claims_html(const validation::Validation& validation, std::string_view origin);

}  // namespace spiked::reports
