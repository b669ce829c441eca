#include "validation/verdicts/claim_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "validation/verdicts/claim_runs.hpp"

namespace spiked::validation {
namespace {

/// A claim by its id and the dump that it is about, which may be none.
using ClaimKey = std::pair<std::string, std::string>;
ClaimKey key_of(const ClaimOutcome& claim) { return {claim.claim->id, claim.claim->on}; }

const ClaimOutcome* outcome_of(const Validation& among, const ClaimKey& key) {
    const auto found = std::find_if(among.claims.begin(), among.claims.end(),
                                    [&](const ClaimOutcome& one) { return key_of(one) == key; });
    return found == among.claims.end() ? nullptr : &*found;
}

const CriterionOutcome* find_criterion(const ClaimOutcome& claim, const CriterionOutcome& like) {
    const auto found = std::find_if(claim.criteria.begin(), claim.criteria.end(), [&](const auto& one) {
        return one.criterion->name == like.criterion->name && one.criterion->form == like.criterion->form;
    });
    return found == claim.criteria.end() ? nullptr : &*found;
}

const Finding* find_at(const Outcome& outcome, std::size_t size) {
    const auto found = std::find_if(outcome.findings.begin(), outcome.findings.end(),
                                    [&](const Finding& one) { return one.size == size; });
    return found == outcome.findings.end() ? nullptr : &*found;
}

ComparedClaim compared_claim(const ClaimOutcome& a, const ClaimOutcome& b) {
    ComparedClaim found{.a = &a, .b = &b};
    const bool of_a = found.same_verdicts();
    found.shown = &(of_a ? a : b).shown();
    const Finding& deciding = found.shown->outcome.deciding();
    const CriterionOutcome* like = find_criterion(of_a ? b : a, *found.shown);
    const Finding* other = like == nullptr ? nullptr : find_at(like->outcome, deciding.size);
    found.finding_a = of_a ? &deciding : other;
    found.finding_b = of_a ? other : &deciding;
    return found;
}

/// The claims of the cells of a store, by the labels of the cells.
std::map<std::string, ClaimKey> claims_by_label(Database& store) {
    std::map<std::string, ClaimKey> claims;
    Statement cell(store, "SELECT label, params FROM cell");
    while (cell.step()) {
        const Json params = Json::parse(cell.text(1), store.path() + ": params of a cell", 8);
        claims[cell.text(0)] = {text_of(params, "claim"), text_of(params, "on")};
    }
    return claims;
}

/// Calls add(control, outcome of a, outcome of b) for a criterion and the controls that both stores have.
template <class Add>
void for_each_outcome(const CriterionOutcome& a, const CriterionOutcome& b, const Add& add) {
    add(as_stated, a.outcome, b.outcome);
    for (const auto controls : {&CriterionOutcome::controls, &CriterionOutcome::positive_controls})
        for (const ControlOutcome& of_a : a.*controls)
            for (const ControlOutcome& of_b : b.*controls)
                if (of_a.definition.name == of_b.definition.name) add(of_a.definition.name, of_a.outcome, of_b.outcome);
}

/// The slopes over sizes that both stores have of a claim.
std::vector<ComparedMean> slopes_of(const ClaimOutcome& a, const ClaimOutcome& b) {
    std::vector<ComparedMean> slopes;
    const auto side = [](const Finding& finding) {
        return ComparedMean::Side{finding.interval.count, finding.interval.estimate, finding.interval.error};
    };
    for (const CriterionOutcome& of_a : a.criteria) {
        const CriterionOutcome* of_b = find_criterion(b, of_a);
        if (of_b == nullptr || !one_slope(*of_a.criterion)) continue;
        for_each_outcome(of_a, *of_b, [&](const std::string& control, const Outcome& one, const Outcome& other) {
            const Finding* slope_a = find_at(one, 0);
            const Finding* slope_b = find_at(other, 0);
            if (slope_a == nullptr || slope_b == nullptr) return;
            ComparedMean row{.cell = fmt::format("{} {}{}", a.claim->id, of_a.criterion->name,
                                                 a.claim->on.empty() ? "" : " on " + a.claim->on),
                             .method = control,
                             .metric = "slope over sizes",
                             .a = side(*slope_a),
                             .b = side(*slope_b)};
            compare_independent(row);
            slopes.push_back(std::move(row));
        });
    }
    return slopes;
}

}  // namespace

std::size_t ClaimComparison::with_other_verdicts() const {
    return static_cast<std::size_t>(
        std::count_if(claims.begin(), claims.end(), [](const ComparedClaim& one) { return !one.same_verdicts(); }));
}

ClaimComparison compare_claims(Database& a, const std::vector<Claim>& claims_a, Database& b,
                               const std::vector<Claim>& claims_b) {
    ClaimComparison found{stored_verdicts(a, claims_a), stored_verdicts(b, claims_b), compare_stores(a, b), {}};
    std::map<std::string, ClaimKey> claim_of = claims_by_label(a);
    for (const ClaimOutcome& one : found.a.claims) {
        const ClaimOutcome* other = outcome_of(found.b, key_of(one));
        if (other == nullptr) {
            found.only_a.push_back(&one);
            continue;
        }
        found.claims.push_back(compared_claim(one, *other));
        for (ComparedMean& slope : slopes_of(one, *other)) {
            claim_of[slope.cell] = key_of(one);
            found.means.rows.push_back(std::move(slope));
        }
    }
    for (const ClaimOutcome& one : found.b.claims)
        if (outcome_of(found.a, key_of(one)) == nullptr) found.only_b.push_back(&one);
    found.means.divide_false_alarm();
    std::map<ClaimKey, std::pair<std::size_t, std::size_t>> counts;  // rows compared, and those beyond chance
    for (const ComparedMean& row : found.means.rows) {
        auto& [compared, beyond] = counts[claim_of[row.cell]];
        ++compared;
        beyond += row.beyond ? 1 : 0;
    }
    for (ComparedClaim& one : found.claims) std::tie(one.compared, one.beyond) = counts[key_of(*one.a)];
    return found;
}

}  // namespace spiked::validation
