#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "reports/verdicts/claim_summary.hpp"
#include "validation/store/sqlite.hpp"
#include "validation/verdicts/claim_verdicts.hpp"

namespace spiked::reports {

/// The content of claims_markdown as one self-contained HTML page. `origin` names the program and command that made the
/// verdicts, and `generator` the command that made the page.
[[nodiscard]] std::string claims_html(const validation::Validation& validation, std::string_view origin,
                                      std::string_view generator = "spiked validate");

/// A page of claims and the path that it is to be written to.
struct ClaimPage {
    std::string path;
    std::string text;
};

/// The verdicts on the claims of a store as pages: `path`, in Markdown where its name ends in .md and else in HTML, and
/// where some claims are about dumps, what was found on these in a page beside it.
[[nodiscard]] std::vector<ClaimPage> claim_pages(validation::Database& store, const validation::Validation& validation,
                                                 const std::string& path);
/// The page of what was found on dumps, beside a page: `CLAIMS-dumps.md` for `CLAIMS.md`.
[[nodiscard]] std::string dumps_page_of(const std::string& path);
/// The sentences that name the program and the command that drew the trials of a store, and what the store lacks.
[[nodiscard]] std::string claims_origin(validation::Database& store, const validation::Validation& found);

/// The content of summary_markdown as one self-contained HTML page. Printed, the losses begin a page.
[[nodiscard]] std::string summary_html(const ClaimSummary& summary, std::string_view origin);

}  // namespace spiked::reports
