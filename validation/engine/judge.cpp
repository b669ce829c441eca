#include "validation/engine/judge.hpp"

#include <fmt/format.h>

#include <string>

#include "validation/statistics/moments.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/statistics/verdict.hpp"

namespace spiked::validation {
namespace {

struct Judgement {
    Comparison found;
    Verdict control = Verdict::inconclusive;
    std::string reason;
};

Judgement compare_with_control(const Moments& moments, double expected, double fault, double margin, double alpha) {
    // The negative control is the same comparison with the prediction of the planted defect, with the same margin and
    // alpha.
    Judgement result;
    Comparison& found = result.found;
    found = compare(moments, expected, margin, alpha);
    result.control = compare(moments, fault, margin, alpha).verdict;
    if (result.control == Verdict::pass) {
        found.verdict = Verdict::fail;
        found.needed = 0;
        result.reason = "the control passes: this check cannot tell the claim from the planted fault";
    } else if (result.control == Verdict::inconclusive && found.verdict == Verdict::pass) {
        found.verdict = Verdict::inconclusive;
        result.reason =
            "the control is inconclusive: more replicates, or a smaller margin, would tell the planted fault";
    } else if (found.verdict == Verdict::inconclusive) {
        result.reason = moments.count < 2 ? "fewer than two replicates"
                        : all_equal(moments.mean, moments.standard_error())
                            ? "all replicates have the same value, which says nothing about rare others"
                        : found.needed > 0
                            ? fmt::format("about {} replicates would decide it", found.needed)
                            : "the estimate lies on the margin, which no number of replicates would tell";
    }
    return result;
}

}  // namespace

void judge(Database& store) {
    Transaction transaction(store);
    store.execute("DELETE FROM verdict");
    // Bonferroni: the probability that any true claim of this store fails is at most false_alarm.
    Statement budget(store, "SELECT false_alarm / max(1, (SELECT count(*) FROM question)) FROM study");
    (void)budget.step();
    const double alpha = budget.real(0);
    Statement question(
        store,
        "SELECT question_id, expected, margin, control_expected, s.n, s.mean, s.mcse, (SELECT SUM(m.m3 + (m.mean -"
        " s.mean) * (3 * m.m2 + m.n * (m.mean - s.mean) * (m.mean - s.mean))) FROM moment m WHERE m.n > 0 AND"
        " m.cell_id = q.cell_id AND m.method_id = q.method_id AND m.metric_id = q.metric_id AND m.k = q.k) FROM"
        " question q LEFT JOIN v_summary s USING(cell_id, method_id, metric_id, k) ORDER BY question_id");
    Statement insert(
        store,
        "INSERT INTO verdict SELECT question_id, check_name, claim, cell_id, method_id, m.name, k, ?2, ?3, expected,"
        " margin, ?4, ?5, ?6, ?7, ?8, nullif(?9, 0), ?10, control_expected, ?11, ?12"
        " FROM question JOIN metric m USING(metric_id) WHERE question_id = ?1");
    while (question.step()) {
        Moments moments;
        moments.count = static_cast<std::uint64_t>(question.integer(4));
        const double n = static_cast<double>(moments.count);
        const double mcse = question.real(6);
        moments.mean = question.real(5);
        moments.m2 = mcse * mcse * n * (n - 1.0);
        moments.m3 = question.real(7);
        const auto [found, control, reason] =
            compare_with_control(moments, question.real(1), question.real(3), question.real(2), alpha);
        insert.bind(1, question.integer(0))
            .bind_real(2, moments.mean)
            .bind_real(3, mcse)
            .bind_real(4, found.low)
            .bind_real(5, found.high)
            .bind_real(6, alpha)
            .bind_real(7, found.detectable)
            .bind(8, static_cast<std::int64_t>(moments.count))
            .bind(9, static_cast<std::int64_t>(found.needed))
            .bind(10, name_of(found.verdict))
            .bind(11, name_of(control))
            .bind(12, reason)
            .run();
    }
    transaction.commit();
}

VerdictCounts count_verdicts(Database& store) {
    VerdictCounts counts;
    Statement query(store, "SELECT verdict, count(*) FROM verdict GROUP BY verdict");
    while (query.step()) {
        const auto number = static_cast<std::size_t>(query.integer(1));
        const auto verdict = find_enum<Verdict>(query.text(0));
        if (verdict == Verdict::pass) counts.passed = number;
        if (verdict == Verdict::fail) counts.failed = number;
        if (verdict == Verdict::inconclusive) counts.inconclusive = number;
    }
    return counts;
}

}  // namespace spiked::validation
