#include "validation/engine/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "core/runtime/error.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/statistics/paired.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/store/experiment.hpp"
#include "validation/store/open_store.hpp"

namespace spiked::validation {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
/// Relative rounding error of sums of some thousand numbers, 64 units in the last place.
constexpr double rounding = 64.0 * std::numeric_limits<double>::epsilon();

struct StoredMean {
    std::int64_t cell;
    std::int64_t method;
    std::int64_t metric;
    int k;
    std::string cell_label;
    std::string method_name;
    std::string metric_name;
    ComparedMean::Side side;

    [[nodiscard]] std::string label() const {
        return fmt::format("{} | {} | {}{}", cell_label, method_name, metric_name, k > 0 ? fmt::format(" {}", k) : "");
    }
};

std::vector<StoredMean> read_means(Database& store) {
    std::vector<StoredMean> means;
    Statement row(
        store,
        "SELECT cell_id, method_id, metric_id, k, cell, method, metric, n, mean, mcse FROM v_summary ORDER BY "
        "cell_id, method_id, metric_id, k");
    while (row.step())
        means.push_back({row.integer(0),
                         row.integer(1),
                         row.integer(2),
                         static_cast<int>(row.integer(3)),
                         row.text(4),
                         row.text(5),
                         row.text(6),
                         {static_cast<std::uint64_t>(row.integer(7)), row.real(8), row.real(9)}});
    return means;
}

struct CellMatch {
    std::int64_t other = 0;  ///< cell_id in b
    bool same_hash = false;
};

std::map<std::int64_t, CellMatch> match_cells(Database& a, Database& b) {
    struct Cells {
        std::map<std::string, std::int64_t> by_hash;
        std::map<std::string, std::vector<std::int64_t>> by_label;
    };
    const auto read = [](Database& store) {
        Cells cells;
        Statement row(store, "SELECT cell_id, cell_hash, label FROM cell");
        while (row.step()) {
            cells.by_hash[row.text(1)] = row.integer(0);
            cells.by_label[row.text(2)].push_back(row.integer(0));
        }
        return cells;
    };
    const Cells of_a = read(a);
    const Cells of_b = read(b);
    std::map<std::int64_t, CellMatch> matches;
    std::map<std::int64_t, bool> taken;
    for (const auto& [hash, cell] : of_a.by_hash)
        if (const auto found = of_b.by_hash.find(hash); found != of_b.by_hash.end()) {
            matches[cell] = {found->second, true};
            taken[found->second] = true;
        }
    for (const auto& [label, cells] : of_a.by_label) {
        const auto found = of_b.by_label.find(label);
        if (found == of_b.by_label.end() || cells.size() > 1 || found->second.size() > 1) continue;
        if (!matches.contains(cells.front()) && !taken[found->second.front()])
            matches[cells.front()] = {found->second.front(), false};
    }
    return matches;
}

/// A paired difference over the draws that both stores have.
struct PairedDifference {
    std::uint64_t draws = 0;    ///< number of replicates if paired by replicate
    std::uint64_t batches = 0;  ///< number of batches if paired by batch; if both are 0, there are no pairs
    double value = 0.0;
    double standard_error = 0.0;
    double degrees = 0.0;  ///< of freedom
};

/// Pairs by replicate if both stores keep all draws; else by batch if there are at least three (the variance of two
/// says little); else by the draws that both keep.
class Pairs {
public:
    Pairs(Database& a, Database& b) : a_(a), b_(b) {}

    PairedDifference difference(const StoredMean& in_a, const StoredMean& in_b) {
        const auto draws = [&](bool all) -> PairedDifference {
            Moments moments;
            std::map<std::int64_t, double> of_b;
            read(b_.values, in_b, [&](Statement& row) { of_b[row.integer(0)] = row.real(1); });
            std::uint64_t kept = 0;
            read(a_.values, in_a, [&](Statement& row) {
                ++kept;
                const auto found = of_b.find(row.integer(0));
                if (found != of_b.end()) moments.add(found->second - row.real(1));
            });
            if (moments.count < 2 || (all && (kept < in_a.side.count || of_b.size() < in_b.side.count))) return {};
            return {moments.count, 0, moments.mean, moments.standard_error(), static_cast<double>(moments.count) - 1.0};
        };
        if (auto paired = draws(true); paired.draws > 0) return paired;
        if (auto paired = over_batches(in_a, in_b); paired.batches >= 3) return paired;
        return draws(false);
    }

private:
    struct Readers {
        explicit Readers(Database& store)
            : values(store,
                     "SELECT rep, v FROM value WHERE cell_id = ? AND method_id = ? AND metric_id = ? AND k = ? AND v "
                     "IS NOT NULL ORDER BY rep"),
              batches(store,
                      "SELECT b.rep_first, b.reps, m.n, m.n * m.mean FROM moment m JOIN batch b USING(cell_id, batch) "
                      "WHERE m.cell_id = ? AND m.method_id = ? AND m.metric_id = ? AND m.k = ? AND m.n > 0") {}
        Statement values;
        Statement batches;
    };

    template <class Take>
    static void read(Statement& rows, const StoredMean& of, const Take& take) {
        rows.reset();
        rows.bind(1, of.cell).bind(2, of.method).bind(3, of.metric).bind(4, of.k);
        while (rows.step()) take(rows);
    }

    /// The difference paired by batches of the same replicates.
    PairedDifference over_batches(const StoredMean& in_a, const StoredMean& in_b) {
        std::map<std::pair<std::int64_t, std::int64_t>, Parts::Sum> of_a;
        read(a_.batches, in_a, [&](Statement& row) {
            of_a[{row.integer(0), row.integer(1)}] = {row.real(2), row.real(3)};
        });
        Parts parts_a;
        Parts parts_b;
        read(b_.batches, in_b, [&](Statement& row) {
            const auto found = of_a.find({row.integer(0), row.integer(1)});
            if (found == of_a.end()) return;
            parts_a.sums[row.integer(0)] = found->second;
            parts_b.sums[row.integer(0)] = {row.real(2), row.real(3)};
        });
        if (parts_a.sums.empty()) return {};
        const PartEstimate estimate = paired_difference(parts_b, parts_a);
        return {0, estimate.influence.size(), estimate.value, estimate.error(), estimate.degrees};
    }

    Readers a_;
    Readers b_;
};

/// Whether the values of a metric are whole numbers, which few replicates may share by chance.
bool counts(const std::string& metric) {
    const auto known = find_metric(metric);
    return known && (metrics()[*known].unit == share_of_replicates || metrics()[*known].unit == whole_components);
}

/// Variance of the mean of one store.
double variance_of(const ComparedMean::Side& side, bool of_whole_numbers) {
    const double error =
        of_whole_numbers && side.standard_error == 0.0 ? fraction_error(0, side.count) : side.standard_error;
    return error * error;
}

/// The p-value of a difference without variance: that of a sign test for whole numbers, which may differ by the same
/// amount in few pairs; other metrics that differ by the same amount everywhere are constants.
double p_value_without_variance(const PairedDifference& paired, bool of_whole_numbers) {
    return of_whole_numbers ? std::exp2(1.0 - static_cast<double>(paired.draws + paired.batches)) : 0.0;
}

void set_difference(ComparedMean& row, const PairedDifference& paired) {
    const bool of_whole_numbers = counts(row.metric);
    double degrees = paired.degrees;
    if (paired.draws + paired.batches > 0) {
        row.pairs = paired.draws;
        row.batches = paired.batches;
        row.difference = paired.value;
        row.standard_error = paired.standard_error;
    } else {
        const double va = variance_of(row.a, of_whole_numbers);
        const double vb = variance_of(row.b, of_whole_numbers);
        row.difference = row.b.mean - row.a.mean;
        row.standard_error = std::sqrt(va + vb);
        degrees =
            (va + vb) * (va + vb) /
            (va * va / (static_cast<double>(row.a.count) - 1.0) + vb * vb / (static_cast<double>(row.b.count) - 1.0));
    }
    const double scale = std::max(std::abs(row.a.mean), std::abs(row.b.mean));
    if (!std::isfinite(row.standard_error) || !std::isfinite(row.difference))
        row.p = nan;
    else if (std::abs(row.difference) <= rounding * scale)
        row.p = 1.0;
    else
        row.p = row.standard_error > 0.0 ? student_p_value(row.difference / row.standard_error, degrees)
                                         : p_value_without_variance(paired, of_whole_numbers);
}

std::pair<std::string, double> seed_and_false_alarm(Database& store) {
    Statement study(store, "SELECT seed, false_alarm FROM study");
    (void)study.step();
    return {study.text(0), study.real(1)};
}

/// The moments of a batch, by method, metric and spike.
using BatchMoments = std::map<std::tuple<std::string, std::string, std::int64_t>, std::array<double, 4>>;

BatchMoments read_batch(Statement& moments, std::int64_t cell, std::int64_t batch) {
    BatchMoments found;
    moments.reset();
    moments.bind(1, cell).bind(2, batch);
    while (moments.step()) {
        const auto number = [&](int column) { return moments.is_null(column) ? 0.0 : moments.real(column); };
        found[{moments.text(0), moments.text(1), moments.integer(2)}] = {number(3), number(4), number(5), number(6)};
    }
    return found;
}

/// Counts common and changed batches. The digest of a batch covers all of its moments and values. If it differs, only
/// the moments that both stores have show whether a number changed, other quantities were measured, or the stores have
/// different schema versions, whose digests differ.
void compare_batches(Database& a, Database& b, const std::map<std::int64_t, CellMatch>& matches,
                     StoreComparison& result) {
    constexpr const char* moments =
        "SELECT me.name, mt.name, k, n, n_null, mean, m2 FROM moment JOIN method me USING(method_id) JOIN metric mt "
        "USING(metric_id) WHERE cell_id = ? AND batch = ?";
    Statement moments_a(a, moments);
    Statement moments_b(b, moments);
    Statement batch(a,
                    "SELECT b.cell_id, b.batch, b.digest, b.rep_first, b.reps, c.label FROM batch b JOIN cell c "
                    "USING(cell_id) ORDER BY 1, 2");
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::pair<std::int64_t, std::string>> batches_of_b;
    Statement of_b(b, "SELECT cell_id, rep_first, reps, batch, digest FROM batch");
    while (of_b.step())
        batches_of_b.try_emplace({of_b.integer(0), of_b.integer(1), of_b.integer(2)}, of_b.integer(3), of_b.text(4));
    while (batch.step()) {
        const auto match = matches.find(batch.integer(0));
        if (match == matches.end() || !match->second.same_hash) continue;
        const auto other = batches_of_b.find({match->second.other, batch.integer(3), batch.integer(4)});
        if (other == batches_of_b.end()) continue;
        const auto& [other_batch, other_digest] = other->second;
        if (other_digest == batch.text(2)) {
            ++result.batches_in_both;
            continue;
        }
        const BatchMoments in_a = read_batch(moments_a, batch.integer(0), batch.integer(1));
        bool common = false;
        bool changed = false;
        for (const auto& [quantity, numbers] : read_batch(moments_b, match->second.other, other_batch))
            if (const auto found = in_a.find(quantity); found != in_a.end()) {
                common = true;
                changed = changed || found->second != numbers;
            }
        if (common) ++result.batches_in_both;
        if (changed && ++result.batches_changed == 1)
            result.first_changed = fmt::format("batch {} of {}", batch.integer(1), batch.text(5));
    }
}

}  // namespace

StoreComparison compare_stores(Database& a, Database& b) {
    const auto [seed_a, alarm_a] = seed_and_false_alarm(a);
    const auto [seed_b, alarm_b] = seed_and_false_alarm(b);
    const bool same_seed = seed_a == seed_b;
    const auto matches = match_cells(a, b);

    StoreComparison result;
    result.seed_a = seed_a;
    result.seed_b = seed_b;
    std::map<std::int64_t, std::int64_t> partners;
    for (const auto& [cell, match] : matches) {
        partners[cell] = match.other;
        if (!match.same_hash) ++result.cells_by_label;
    }
    result.verdicts = compare_verdicts(a, b, partners);
    result.false_alarm = std::min(alarm_a, alarm_b);
    Statement kind(a, "SELECT kind FROM study");
    result.dependent_draws = kind.step() && of_dumps_or_models(kind.text(0));
    if (same_seed) compare_batches(a, b, matches, result);
    std::map<std::tuple<std::int64_t, std::string, std::string, int>, const StoredMean*> of_b;
    const auto means_b = read_means(b);
    for (const auto& mean : means_b) of_b[{mean.cell, mean.method_name, mean.metric_name, mean.k}] = &mean;

    Pairs pairs(a, b);
    for (const auto& mean : read_means(a)) {
        const auto match = matches.find(mean.cell);
        const auto found = match == matches.end()
                               ? of_b.end()
                               : of_b.find({match->second.other, mean.method_name, mean.metric_name, mean.k});
        if (found == of_b.end()) {
            result.only_a.push_back(mean.label());
            continue;
        }
        ComparedMean row{.cell = mean.cell_label, .method = mean.method_name, .metric = mean.metric_name, .k = mean.k};
        row.a = mean.side;
        row.b = found->second->side;
        set_difference(
            row, same_seed && match->second.same_hash ? pairs.difference(mean, *found->second) : PairedDifference{});
        result.rows.push_back(std::move(row));
        found->second = nullptr;
    }
    for (const auto& mean : means_b)
        if (of_b.at({mean.cell, mean.method_name, mean.metric_name, mean.k}) != nullptr)
            result.only_b.push_back(mean.label());
    if (result.rows.empty() && !result.only_a.empty() && !result.only_b.empty())
        throw usage_error(
            "{} and {} have no mean in common (no cell and method is in both; the first have {} and {}): name two "
            "stores of related studies",
            a.path(), b.path(), result.only_a.front(), result.only_b.front());
    for (const ComparedVerdict& one : result.verdicts.rows) {
        if (!one.of_exponent) continue;
        ComparedMean row{.cell = one.cell, .method = one.method, .metric = one.metric, .k = one.k};
        row.a = {one.a.count, one.a.estimate, one.a.standard_error};
        row.b = {one.b.count, one.b.estimate, one.b.standard_error};
        compare_independent(row);
        result.rows.push_back(std::move(row));
    }
    result.divide_false_alarm();
    return result;
}

void compare_independent(ComparedMean& row) { set_difference(row, {}); }

void StoreComparison::divide_false_alarm() {
    const auto with_error = std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !std::isnan(row.p); });
    alpha = false_alarm / static_cast<double>(std::max<std::ptrdiff_t>(1, with_error));
    for (auto& row : rows) row.beyond = row.p < alpha;
    beyond =
        static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.beyond; }));
}

Json StoreComparison::json() const {
    const auto side = [](const ComparedMean::Side& of) {
        return Json::object(
            {{"n", static_cast<std::int64_t>(of.count)}, {"mean", of.mean}, {"mcse", of.standard_error}});
    };
    Json lines = Json::array();
    for (const auto& row : rows)
        lines.push(
            Json::object({{"cell", row.cell},
                          {"method", row.method},
                          {"metric", row.metric},
                          {"k", row.k},
                          {"a", side(row.a)},
                          {"b", side(row.b)},
                          {"difference", row.difference},
                          {"mcse_difference", row.standard_error},
                          {"pairs", row.pairs == 0 ? Json() : Json(static_cast<std::int64_t>(row.pairs))},
                          {"paired_batches", row.batches == 0 ? Json() : Json(static_cast<std::int64_t>(row.batches))},
                          {"p", row.p},
                          {"beyond", row.beyond}}));
    const auto list = [](const std::vector<std::string>& labels) {
        return Json(Json::Array(labels.begin(), labels.end()));
    };
    return Json::object({{"schema", "spiked.compare/1"},
                         {"seed_a", seed_a},
                         {"seed_b", seed_b},
                         {"cells_by_label", cells_by_label},
                         {"dependent_draws", dependent_draws},
                         {"false_alarm", false_alarm},
                         {"alpha", alpha},
                         {"beyond", beyond},
                         {"batches_in_both", static_cast<std::int64_t>(batches_in_both)},
                         {"batches_changed", static_cast<std::int64_t>(batches_changed)},
                         {"first_changed", first_changed.empty() ? Json() : Json(first_changed)},
                         {"rows", std::move(lines)},
                         {"only_a", list(only_a)},
                         {"only_b", list(only_b)}});
}

}  // namespace spiked::validation
