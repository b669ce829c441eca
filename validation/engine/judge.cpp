#include "validation/engine/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "validation/metrics/codec_measurement.hpp"
#include "validation/metrics/metric_table.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/statistics/verdict.hpp"
#include "validation/store/experiment.hpp"

namespace spiked::validation {
namespace {

struct Judgement {
    Interval interval;
    Comparison found;
    Verdict control = Verdict::inconclusive;
    std::string reason;
};

/// Adds the verdict on the control, which must lie outside of the region.
void judge_control(Judgement& result, Verdict control) {
    Comparison& found = result.found;
    result.control = control;
    if (result.control == Verdict::pass) {
        found.verdict = Verdict::fail;
        found.needed = 0;
        result.reason = "the control passes: this check cannot tell the claim from the planted fault";
    } else if (result.control == Verdict::inconclusive && found.verdict == Verdict::pass) {
        found.verdict = Verdict::inconclusive;
        result.reason =
            "the control is inconclusive: more replicates, or a smaller margin, would tell the planted fault";
    }
}

/// The verdict on the control: the same interval, moved to the number that the planted defect predicts.
Verdict moved_to(double fault, const Interval& interval, const AcceptanceRegion& region) {
    const bool finite = std::isfinite(interval.low) && std::isfinite(interval.high);
    return finite ? judge_at(fault, interval, region) : Verdict::inconclusive;
}

/// Judges a fraction of replicates. The interval of the control is that of a fraction as near to it as these replicates
/// can have.
Judgement judge_fraction(const Moments& moments, double fault, const AcceptanceRegion& region, double alpha) {
    const auto interval_at = [&](double fraction) {
        const double n = static_cast<double>(moments.count);
        const auto ones = static_cast<std::uint64_t>(std::llround(std::clamp(n * fraction, 0.0, n)));
        return fraction_interval(ones, moments.count, alpha);
    };
    const Interval interval = moments.count > 0 ? interval_at(moments.mean) : Interval{};
    Judgement result{interval, compare(interval, region)};
    if (moments.count > 0) {
        // No fraction lies beyond an end at 0 or 1, so that only the other end can detect anything.
        AcceptanceRegion open = region;
        if (open.low <= 0.0) open.low = -std::numeric_limits<double>::infinity();
        if (open.high >= 1.0) open.high = std::numeric_limits<double>::infinity();
        result.found.detectable = smallest_detectable_fraction(moments.count, open, alpha);
        const bool possible = fault >= 0.0 && fault <= 1.0;
        judge_control(result, possible ? judge(interval_at(fault), region) : moved_to(fault, interval, region));
    }
    if (result.found.verdict == Verdict::inconclusive && result.reason.empty())
        result.reason = moments.count == 0 ? "no replicates" : "more replicates, or a wider region, would decide it";
    return result;
}

/// The kind of the values of a question, which decides how their interval is computed.
enum class Values {
    any,
    zero_or_one,  ///< share_of_replicates
    constant      ///< sizes of a code whose size does not depend on the data
};

/// Judges a mean.
Judgement judge_mean(const Moments& moments, Values values, double fault, const AcceptanceRegion& region,
                     double alpha) {
    if (values == Values::zero_or_one) return judge_fraction(moments, fault, region, alpha);
    const bool equal = moments.count > 1 && all_equal(moments.mean, moments.standard_error());
    Judgement result;
    if (equal && values == Values::constant) {
        result.interval = equal_values_interval(moments.mean, moments.count, 0.0, alpha);
        result.found = compare(result.interval, region);
    } else {
        result = {mean_interval(moments, alpha), compare(moments, region, alpha)};
    }
    judge_control(result, moved_to(fault, result.interval, region));
    if (result.found.verdict == Verdict::inconclusive && result.reason.empty())
        result.reason = moments.count < 2 ? "fewer than two replicates"
                        : equal           ? "all replicates have the same value, which says nothing about rare others"
                        : result.found.needed > 0
                            ? fmt::format("about {} replicates would decide it", result.found.needed)
                            : "the estimate lies on the margin, which no number of replicates would tell";
    return result;
}

/// Judges the exponent with which the means change over the sizes.
Judgement judge_exponent(const std::vector<SizeMoments>& sweep, double fault, const AcceptanceRegion& region,
                         double alpha) {
    const Interval interval = exponent_interval(sweep, alpha);
    Judgement result{interval, compare(interval, region)};
    judge_control(result, moved_to(fault, interval, region));
    if (result.found.verdict == Verdict::inconclusive && result.reason.empty())
        result.reason =
            std::isfinite(interval.low) && std::isfinite(interval.high)
                ? "more replicates, or sizes farther apart, would decide it"
                : "a mean has fewer than three values or equal ones, or is not surely above 0, where it has "
                  "no logarithm";
    return result;
}

/// The third moment of a question's quantity in the row `s` of v_summary, for a statement.
constexpr const char* third_moment =
    "(SELECT SUM(m.m3 + (m.mean - s.mean) * (3 * m.m2 + m.n * (m.mean - s.mean) * (m.mean - s.mean))) FROM moment m "
    "WHERE m.n > 0 AND m.cell_id = s.cell_id AND m.method_id = s.method_id AND m.metric_id = s.metric_id AND m.k = "
    "s.k)";

/// From six columns: number of values, mean, its standard error, lowest and highest value, third moment.
Moments moments_in(const Statement& row, int first) {
    Moments moments;
    moments.count = static_cast<std::uint64_t>(row.integer(first));
    const double n = static_cast<double>(moments.count);
    const double mcse = row.real(first + 2);
    moments.mean = row.real(first + 1);
    moments.m2 = mcse * mcse * n * (n - 1.0);
    // Without values, every column is NULL, and 0 here.
    if (moments.count > 0) {
        moments.low = row.real(first + 3);
        moments.high = row.real(first + 4);
    }
    moments.m3 = row.real(first + 5);
    return moments;
}

/// The moments of each size of the questions about exponents.
std::map<std::int64_t, std::vector<SizeMoments>> sweeps_of(Database& store) {
    std::map<std::int64_t, std::vector<SizeMoments>> sweeps;
    if (store.integer("SELECT EXISTS(SELECT 1 FROM question_cell)") == 0) return sweeps;
    Statement member(
        store,
        fmt::format("SELECT question_id, o.size, s.n, s.mean, s.mcse, s.lo, s.hi, {} FROM question_cell o JOIN "
                    "question q USING(question_id) LEFT JOIN v_summary s ON s.cell_id = o.cell_id AND "
                    "(s.method_id, s.metric_id, s.k) = (q.method_id, q.metric_id, q.k) ORDER BY question_id, o.size",
                    third_moment));
    while (member.step()) sweeps[member.integer(0)].push_back({member.real(1), moments_in(member, 2)});
    return sweeps;
}

/// The kind of the values of a metric, from its unit and the kind, name and settings of the method.
Values values_of(const std::string& unit, const std::string& kind, const std::string& base, const std::string& params) {
    if (unit == share_of_replicates) return Values::zero_or_one;
    if (unit != bits_an_entry || kind != "codec") return Values::any;
    const std::string labelled = text_of(Json::parse(params, "settings of a method", 16), "method");
    return has_constant_size(labelled.empty() ? base : labelled) ? Values::constant : Values::any;
}

}  // namespace

void judge(Database& store) {
    Transaction transaction(store);
    store.execute("DELETE FROM verdict");
    // Bonferroni: the probability that any true claim of this store fails is at most false_alarm.
    Statement budget(store, "SELECT false_alarm / max(1, (SELECT count(*) FROM question)) FROM study");
    (void)budget.step();
    const double alpha = budget.real(0);
    const auto sweeps = sweeps_of(store);
    Statement question(
        store, fmt::format("SELECT question_id, expected, allowed_lo, allowed_hi, control_expected, margin, s.n, "
                           "s.mean, s.mcse, s.lo, s.hi, {}, t.unit, me.kind, me.base, me.params FROM question q JOIN "
                           "metric t USING(metric_id) JOIN method me USING(method_id) LEFT JOIN v_summary s "
                           "USING(cell_id, method_id, metric_id, k) ORDER BY question_id",
                           third_moment));
    Statement insert(
        store,
        "INSERT INTO verdict SELECT question_id, check_name, claim, cell_id, method_id, m.name, k, ?2, ?3, expected, "
        "margin, ?4, ?5, ?6, ?7, ?8, nullif(?9, 0), ?10, control_expected, ?11, ?12, allowed_lo, allowed_hi,"
        " exponent_of FROM question JOIN metric m USING(metric_id) WHERE question_id = ?1");
    while (question.step()) {
        AcceptanceRegion region = between(question.real(2), question.real(3));
        // The ends of a region about a prediction are rounded, but the prediction and the margin are not.
        if (!question.is_null(1)) region.predicted = question.real(1), region.margin = question.real(5);
        const double fault = question.real(4);
        const auto sweep = sweeps.find(question.integer(0));
        const Values values = values_of(question.text(12), question.text(13), question.text(14), question.text(15));
        const Judgement result = sweep != sweeps.end()
                                     ? judge_exponent(sweep->second, fault, region, alpha)
                                     : judge_mean(moments_in(question, 6), values, fault, region, alpha);
        insert.bind(1, question.integer(0))
            .bind_real(2, result.interval.estimate)
            .bind_real(3, result.interval.error)
            .bind_real(4, result.found.low)
            .bind_real(5, result.found.high)
            .bind_real(6, alpha)
            .bind_real(7, result.found.detectable)
            .bind(8, static_cast<std::int64_t>(result.interval.count))
            .bind(9, static_cast<std::int64_t>(result.found.needed))
            .bind(10, name_of(result.found.verdict))
            .bind(11, name_of(result.control))
            .bind(12, result.reason)
            .run();
    }
    transaction.commit();
}

void judge_at_rate(Database& store, double false_alarm) {
    if (store.integer("SELECT status LIKE 'shard %' AND EXISTS(SELECT 1 FROM question) FROM study") != 0)
        throw usage_error("{}: a part gives no verdicts: merge it with the other parts first", store.path());
    std::string columns;
    Statement column(store, "SELECT name FROM pragma_table_info('study', 'main')");
    while (column.step()) {
        const std::string name = column.text(0);
        columns += (columns.empty() ? "" : ", ") +
                   (name == "false_alarm" ? fmt::format("{:.17g} AS false_alarm", false_alarm) : name);
    }
    // Temporary tables hide those of the file. Of an earlier version, verdict is a temporary view already.
    store.execute("CREATE TEMP VIEW study AS SELECT " + columns + " FROM main.study");
    store.execute("CREATE TEMP TABLE judged AS SELECT * FROM verdict WHERE false; DROP VIEW IF EXISTS temp.verdict");
    store.execute("CREATE TEMP TABLE verdict AS SELECT * FROM temp.judged; DROP TABLE temp.judged");
    judge(store);
}

void judge_again(Database& store, double false_alarm) {
    if (store.integer(fmt::format("SELECT EXISTS(SELECT 1 FROM question) OR kind = '{}' FROM study", claims_kind)) == 0)
        throw usage_error("{}: it holds neither checks nor claims, which a false-alarm rate is for: leave the rate out",
                          store.path());
    judge_at_rate(store, false_alarm);
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
