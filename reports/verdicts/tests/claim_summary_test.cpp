#include "reports/verdicts/claim_summary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reports/page/claim_page.hpp"
#include "reports/tables/claim_report.hpp"
#include "validation/claims/parts/fixture.hpp"

namespace spiked::reports {
namespace {

using validation::AcceptanceRegion;
using validation::ClaimKind;
using validation::ClaimOutcome;
using validation::PrintedVerdict;
using validation::Verdict;

std::size_t occurrences(std::string_view text, std::string_view words) {
    std::size_t count = 0;
    for (auto at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) ++count;
    return count;
}

/// A judged claim of the program with one finding per criterion.
ClaimOutcome judged(const validation::Claim& claim, PrintedVerdict printed, double estimate, std::size_t size = 128) {
    ClaimOutcome outcome;
    outcome.claim = &claim;
    outcome.printed = printed;
    for (const auto& criterion : claim.criteria) {
        validation::CriterionOutcome one{.criterion = &criterion};
        one.outcome.findings = {{.size = size,
                                 .interval = {estimate, 0.01, estimate - 0.05, estimate + 0.05, 100},
                                 .region = validation::at_most(0.0, 0.05),
                                 .verdict = printed == PrintedVerdict::holds ? Verdict::pass : Verdict::fail}};
        outcome.criteria.push_back(std::move(one));
    }
    return outcome;
}

validation::Validation some_claims() {
    static const validation::Claim on_dump = [] {
        validation::Claim claim = *validation::find_claim("one-bit-saved");
        claim.on = "small|model.safetensors";
        claim.refuted_as = ClaimKind::does_not_transfer;
        return claim;
    }();
    validation::Validation found;
    found.false_alarm = 1e-3;
    found.comparisons = 7;
    const auto add = [&](const char* id, PrintedVerdict printed, double estimate) {
        found.claims.push_back(judged(*validation::find_claim(id), printed, estimate));
    };
    add("qjl.mean", PrintedVerdict::refuted, 0.48);
    add("outlier.location", PrintedVerdict::holds, -0.0014);
    add("prop.norm", PrintedVerdict::vacuous, 0.0022);
    add("rank.false-alarm", PrintedVerdict::refuted, 0.34);
    add("one-bit-saved", PrintedVerdict::refuted, 0.73);
    add("edge.estimator", PrintedVerdict::inconclusive, -0.4);
    for (auto& one : found.claims.back().criteria) one.outcome.levels = {{128, 0.23, -0.22}};
    found.claims.push_back(judged(on_dump, PrintedVerdict::refuted, 0.2));
    return found;
}

TEST(ClaimSummary, HasEveryClaimOnceUnderItsKindInBothFormats) {
    const auto found = some_claims();
    const ClaimSummary summary = summary_of(found);
    const std::string markdown = summary_markdown(summary, "Made by a test.");
    const std::string html = summary_html(summary, "Made by a test.");
    for (const auto& claim : found.claims) {
        const std::string title = claim.claim->on.empty() ? claim.claim->id : claim.claim->id + " on dumps";
        EXPECT_EQ(occurrences(markdown, "| `" + title + "` |"), 1U) << title;
        EXPECT_EQ(occurrences(html, "<code>" + title + "</code>"), 1U) << title;
    }
    for (const std::string& page : {markdown, html}) {
        EXPECT_NE(page.find("Tier quick: 7 claims"), std::string::npos) << page;
        const auto misprints = page.find("Misprints");
        const auto holds = page.find("Holds within the margin");
        const auto undecided = page.find("Undecided in this run");
        ASSERT_NE(undecided, std::string::npos);
        EXPECT_LT(misprints, page.find("qjl.mean"));
        EXPECT_LT(page.find("qjl.mean"), holds);
        EXPECT_LT(holds, page.find("outlier.location"));
        EXPECT_LT(page.find("outlier.location"), undecided);
        EXPECT_LT(undecided, page.find("edge.estimator"));
        EXPECT_NE(page.find("A signal that can be seen shows up where the theory puts it."), std::string::npos);
        EXPECT_NE(page.find("small"), std::string::npos) << "the dump is named";
    }
}

// The size of the fault that would pass is known up to the step of the search, which is stated where it starts at 0.
TEST(ClaimSummary, StatesBothEndsOfTheClosestFault) {
    auto found = some_claims();
    ClaimOutcome& claim = found.claims[1];
    ASSERT_EQ(claim.claim->id, "outlier.location");
    auto& criterion = claim.criteria.front();
    const auto& control = criterion.criterion->negative_controls.front();
    criterion.controls.push_back({control, criterion.outcome});
    claim.closest_fault = validation::ClosestFault{control.name,
                                                   criterion.criterion->name,
                                                   0.0,
                                                   0.1,
                                                   "of the strength",
                                                   0.0,
                                                   true,
                                                   "theta at a strength 0 to 10 % too large"};
    const std::string markdown = summary_markdown(summary_of(found), "Made by a test.");
    EXPECT_EQ(occurrences(markdown, "| theta at a strength 0 to 10 % too large |"), 1U) << markdown;
}

// A reader who has this page alone learns what its columns and its noise are, and the noise is the one that is drawn.
TEST(ClaimSummary, SaysWhatItsColumnsAndItsNoiseMean) {
    const auto found = some_claims();
    const ClaimSummary summary = summary_of(found);
    for (const std::string& page :
         {summary_markdown(summary, "Made by a test."), summary_html(summary, "Made by a test."),
          claims_markdown(found, "Made by a test.")})
        EXPECT_EQ(occurrences(page, std::string(noise_legend)), 1U) << page;
    EXPECT_NE(summary.reading.find("these are the checks of its corrected form"), std::string::npos);

    const auto model = validation::make_fixture({validation::Noise::coloured, 1.0, {}}, 64).model;
    const arma::vec& b = model.column.eigenvalues();
    for (arma::uword j = 0; j < 64; ++j)
        EXPECT_NEAR(b(j), std::exp(-3.0 * (static_cast<double>(j) + 0.5) / 64.0), 1e-12) << j;
    // Of an AR(1) series with .5: variances 1, and eigenvalues between 1/3 and 3.
    const arma::vec& a = model.row.eigenvalues();
    EXPECT_NEAR(arma::mean(a), 1.0, 1e-12);
    EXPECT_NEAR(a.max(), 3.0, 0.02);
    EXPECT_NEAR(a.min(), 1.0 / 3.0, 0.001);
}

// The second page calls entries Gaussian unless a row says otherwise.
TEST(ClaimSummary, NamesEntriesThatAreNotGaussian) {
    validation::Validation found;
    for (const char* id : {"rank.consistency", "corollary.constant", "sticking"})
        found.claims.push_back(judged(*validation::find_claim(id), PrintedVerdict::holds, 0.3));
    const ClaimSummary summary = summary_of(found);
    ASSERT_EQ(summary.groups.size(), 1U);
    const auto& rows = summary.groups.front().rows;
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_NE(rows[0].measured.find("entries +1 and -1"), std::string::npos) << rows[0].measured;
    EXPECT_NE(rows[1].measured.find("Student entries"), std::string::npos) << rows[1].measured;
    EXPECT_EQ(rows[2].measured.find("entries"), std::string::npos) << rows[2].measured;
}

// What is said of the rank rule in practice are numbers of the note, without its argument about assumptions.
TEST(ClaimSummary, SaysFromWhichStrengthASignalIsCounted) {
    validation::Validation found;
    found.claims.push_back(judged(*validation::find_claim("rank.consistency"), PrintedVerdict::refuted, 0.14));
    const auto losses = summary_of(found).losses;
    const auto weak = std::find_if(losses.begin(), losses.end(),
                                   [](const SummaryLoss& one) { return one.title.starts_with("Weak signals"); });
    ASSERT_NE(weak, losses.end());
    for (const char* number : {"1.54", "1.41"}) {
        EXPECT_NE(weak->text.find(number), std::string::npos) << weak->text;
        EXPECT_NE(found.claims.front().claim->note.find(number), std::string::npos);
    }
    EXPECT_NE(weak->text.find("14 % at d = 128"), std::string::npos) << weak->text;
    EXPECT_EQ(weak->text.find("Rademacher"), std::string::npos) << weak->text;
}

// Numbers of the second page are those of the run; without their claims a loss is left out.
TEST(ClaimSummary, TakesTheLossesFromTheRun) {
    auto found = some_claims();
    const auto text_of = [](const ClaimSummary& summary, std::string_view title) {
        const auto loss = std::find_if(summary.losses.begin(), summary.losses.end(),
                                       [&](const SummaryLoss& one) { return one.title == title; });
        return loss == summary.losses.end() ? std::string() : loss->text;
    };
    const ClaimSummary summary = summary_of(found);
    EXPECT_NE(text_of(summary, "The edge of the noise").find("22 % too low at d = 128"), std::string::npos);
    EXPECT_NE(text_of(summary, "False alarms").find("one: 66 % at d = 128"), std::string::npos)
        << text_of(summary, "False alarms");
    EXPECT_NE(text_of(summary, "Savings in bits").find("0.73 at d = 128 on keys"), std::string::npos);
    EXPECT_NE(text_of(summary, "Savings in bits").find("On the keys of 1 dump: 0.20 to 0.20."), std::string::npos);
    EXPECT_NE(text_of(summary, "Error rates").find("any of the 7 comparisons"), std::string::npos);
    EXPECT_EQ(text_of(summary, "Gaussian only"), "");
    std::erase_if(found.claims, [](const ClaimOutcome& one) { return one.claim->id == "edge.estimator"; });
    EXPECT_EQ(text_of(summary_of(found), "The edge of the noise"), "");
}

}  // namespace
}  // namespace spiked::reports
