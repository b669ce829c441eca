#include "reports/tables/claim_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace spiked::reports {
namespace {

// Norms and inner products are written with bars, which would end a cell of a Markdown table unless they are escaped.
TEST(ClaimReport, EscapesBarsInMarkdownTables) {
    const validation::Criterion criterion{.name = "bars", .measures = "||R||^2 - |<q, r>| over |a|"};
    const validation::Claim claim{.id = "made-up",
                                  .place = "nowhere",
                                  .statement = "max_j |r_j| is small",
                                  .corrected = "",
                                  .criteria = {criterion}};
    validation::Outcome outcome;
    outcome.findings.push_back({.size = 16});
    validation::ClaimOutcome judged;
    judged.claim = &claim;
    judged.criteria.push_back({&claim.criteria[0],
                               outcome,
                               {{{"|f|", "a planted defect"}, outcome}},
                               {{{"|t|", "a positive control"}, outcome}},
                               false});
    validation::Validation found;
    found.claims.push_back(judged);

    std::istringstream page(claims_markdown(found, "made by a test"));
    std::size_t header = 0;
    std::size_t rows = 0;
    for (std::string line; std::getline(page, line);) {
        if (line.empty() || line.front() != '|') {
            header = 0;
            continue;
        }
        std::size_t bars = 0;
        for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
        if (header == 0) header = bars;
        EXPECT_EQ(bars, header) << line;
        ++rows;
    }
    EXPECT_EQ(rows, 3U + 5U) << "a table of claims, and one of evidence with a negative and a positive control";
}

}  // namespace
}  // namespace spiked::reports
