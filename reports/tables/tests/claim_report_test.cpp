#include "reports/tables/claim_report.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "validation/claims/claims.hpp"

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

// The closest fault that passes, and the levels behind a slope, are in every form of the result.
TEST(ClaimReport, StatesTheClosestFaultAndTheLevelsOfSlopes) {
    const validation::Criterion criterion{.name = "rate", .measures = "an error", .summary = validation::Summary::rate};
    const validation::Claim claim{
        .id = "made-up", .place = "nowhere", .statement = "it is small", .corrected = "", .criteria = {criterion}};
    validation::Outcome outcome;
    outcome.findings.push_back({.size = 0});
    outcome.levels = {{64, 0.29, -0.28}, {128, 0.226, -0.22}};
    const validation::ClosestFault closest{
        "large", "rate", 0.15, 0.225, "of the threshold", 0.25, true, "a threshold 15 to 23 % too large"};
    validation::ClaimOutcome judged;
    judged.claim = &claim;
    judged.closest_fault = closest;
    judged.criteria.push_back({&claim.criteria[0], outcome, {{{"large", "too large"}, outcome, closest}}, {}, false});
    validation::Validation found;
    found.claims.push_back(judged);

    const Json document = claims_json(found);
    const Json& one = (*document.find("claims")->items())[0];
    const Json& fault = *one.find("closest_passing_fault");
    EXPECT_EQ(*fault.find("fault")->string(), "large");
    EXPECT_EQ(fault.find("size")->text(), "0.15");
    EXPECT_EQ(*fault.find("unit")->string(), "of the threshold");
    EXPECT_EQ(*fault.find("words")->string(), "a threshold 15 to 23 % too large");
    const Json& levels = *(*one.find("criteria")->items())[0].find("levels");
    ASSERT_EQ(levels.items()->size(), 2U);
    EXPECT_EQ((*levels.items())[1].find("level")->text(), "0.226");
    EXPECT_NE(claims_text(found, false).find("a threshold 15 to 23 % too large"), std::string::npos);
    const std::string page = claims_markdown(found, "made by a test");
    EXPECT_NE(page.find("**Largest fault that would not fail**: a threshold 15 to 23 % too large."),
              std::string::npos);
    EXPECT_NE(page.find("| root mean square at each size | d = 64: 0.29 (mean -0.28), d = 128: 0.23 (mean -0.22) |"),
              std::string::npos)
        << page;
    found.claims[0].closest_fault.reset();
    EXPECT_EQ((*claims_json(found).find("claims")->items())[0].find("closest_passing_fault")->text(), "null");
}

/// The page in the repository, which a full run wrote. Its numbers are those of that run; its sentences are compared.
TEST(ClaimReport, ThePageInTheRepositoryHasTheSentencesOfTheTable) {
    std::ifstream file(SPIKED_SOURCE_DIR "/docs/CLAIMS.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    for (const validation::Claim& claim : validation::claims()) {
        const std::size_t begin = page.find(fmt::format("\n## {}\n", claim.id));
        ASSERT_NE(begin, std::string::npos) << claim.id;
        const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
        std::vector<std::string> sentences = {fmt::format(": {}. *{}.*\n", claim.statement, claim.place)};
        if (!claim.corrected.empty()) sentences.push_back(fmt::format(": {}.\n", claim.corrected));
        if (!claim.note.empty()) sentences.push_back(fmt::format("**Note**: {}.\n", claim.note));
        for (const std::string& sentence : sentences)
            EXPECT_NE(section.find(sentence), std::string::npos) << claim.id << sentence << "write the page again";
        for (const validation::Criterion& criterion : claim.criteria)
            EXPECT_NE(section.find(fmt::format("| {} ", markdown_cell(criterion.measures))), std::string::npos)
                << claim.id << ": " << criterion.measures;
    }
}

}  // namespace
}  // namespace spiked::reports
