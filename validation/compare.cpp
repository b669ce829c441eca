#include "validation/compare.hpp"

#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "theory/base/error.hpp"
#include "validation/moments.hpp"
#include "validation/store.hpp"

namespace spiked::validation {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
/// Sums of some thousand numbers carry about so many units in the last place.
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

/// Differences of the draws that both stores keep.
class Pairs {
public:
    Pairs(Database& a, Database& b) : a_(a, query), b_(b, query) {}

    Moments differences(const StoredMean& in_a, const StoredMean& in_b) {
        start(a_, in_a);
        start(b_, in_b);
        Moments moments;
        bool more_a = a_.step();
        bool more_b = b_.step();
        while (more_a && more_b) {
            const std::int64_t rep_a = a_.integer(0);
            const std::int64_t rep_b = b_.integer(0);
            if (rep_a == rep_b) moments.add(b_.real(1) - a_.real(1));
            if (rep_a <= rep_b) more_a = a_.step();
            if (rep_b <= rep_a) more_b = b_.step();
        }
        return moments;
    }

private:
    static constexpr const char* query =
        "SELECT rep, v FROM value WHERE cell_id = ? AND method_id = ? AND metric_id = ? AND k = ? ORDER BY rep";
    static void start(Statement& values, const StoredMean& of) {
        values.reset();
        values.bind(1, of.cell).bind(2, of.method).bind(3, of.metric).bind(4, of.k);
    }

    Statement a_;
    Statement b_;
};

/// Two-sided, in Student's law.
double chance(double difference, double standard_error, double degrees) {
    const double t = std::abs(difference) / standard_error;
    return 2.0 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), t));
}

void set_difference(ComparedMean& row, const Moments& paired) {
    double degrees = 0.0;
    if (paired.count >= 2) {
        row.pairs = paired.count;
        row.difference = paired.mean;
        row.standard_error = paired.standard_error();
        degrees = static_cast<double>(paired.count) - 1.0;
    } else {
        const double va = row.a.standard_error * row.a.standard_error;
        const double vb = row.b.standard_error * row.b.standard_error;
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
        row.p = row.standard_error > 0.0 ? chance(row.difference, row.standard_error, degrees) : 0.0;
}

std::pair<std::string, double> seed_and_false_alarm(Database& store) {
    Statement study(store, "SELECT seed, false_alarm FROM study");
    (void)study.step();
    return {study.text(0), study.real(1)};
}

void compare_digests(Database& a, Database& b, const std::map<std::int64_t, CellMatch>& matches,
                     StoreComparison& result) {
    Statement batch(
        a, "SELECT b.cell_id, b.batch, b.digest, c.label FROM batch b JOIN cell c USING(cell_id) ORDER BY 1, 2");
    Statement other(b, "SELECT digest FROM batch WHERE cell_id = ? AND batch = ?");
    while (batch.step()) {
        const auto match = matches.find(batch.integer(0));
        if (match == matches.end() || !match->second.same_hash) continue;
        other.reset();
        other.bind(1, match->second.other).bind(2, batch.integer(1));
        if (!other.step()) continue;
        ++result.batches_in_both;
        if (other.text(0) == batch.text(2)) continue;
        if (++result.batches_changed == 1)
            result.first_changed = fmt::format("batch {} of {}", batch.integer(1), batch.text(3));
    }
}

}  // namespace

StoreComparison compare_stores(const std::string& path_a, const std::string& path_b) {
    Database a = open_store(path_a);
    Database b = open_store(path_b);
    a.execute("BEGIN");  // one state of each, even while a run writes to it
    b.execute("BEGIN");
    const auto [seed_a, alarm_a] = seed_and_false_alarm(a);
    const auto [seed_b, alarm_b] = seed_and_false_alarm(b);
    const bool same_seed = seed_a == seed_b;
    const auto matches = match_cells(a, b);

    StoreComparison result;
    result.false_alarm = std::min(alarm_a, alarm_b);
    if (same_seed) compare_digests(a, b, matches, result);
    std::map<std::tuple<std::int64_t, std::string, std::string, int>, const StoredMean*> of_b;
    const auto means_b = read_means(b);
    for (const auto& mean : means_b) of_b[{mean.cell, mean.method_name, mean.metric_name, mean.k}] = &mean;

    Pairs pairs(a, b);
    std::size_t with_error = 0;
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
        set_difference(row, same_seed && match->second.same_hash ? pairs.differences(mean, *found->second) : Moments{});
        if (!std::isnan(row.p)) ++with_error;
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
            path_a, path_b, result.only_a.front(), result.only_b.front());
    result.alpha = result.false_alarm / static_cast<double>(std::max<std::size_t>(1, with_error));
    for (auto& row : result.rows) {
        row.beyond = row.p < result.alpha;
        if (row.beyond) ++result.beyond;
    }
    return result;
}

Json StoreComparison::json() const {
    const auto side = [](const ComparedMean::Side& of) {
        return Json::object(
            {{"n", static_cast<std::int64_t>(of.count)}, {"mean", of.mean}, {"mcse", of.standard_error}});
    };
    Json lines = Json::array();
    for (const auto& row : rows)
        lines.push(Json::object({{"cell", row.cell},
                                 {"method", row.method},
                                 {"metric", row.metric},
                                 {"k", row.k},
                                 {"a", side(row.a)},
                                 {"b", side(row.b)},
                                 {"difference", row.difference},
                                 {"mcse_difference", row.standard_error},
                                 {"pairs", row.pairs == 0 ? Json() : Json(static_cast<std::int64_t>(row.pairs))},
                                 {"p", row.p},
                                 {"beyond", row.beyond}}));
    const auto list = [](const std::vector<std::string>& labels) {
        return Json(Json::Array(labels.begin(), labels.end()));
    };
    return Json::object({{"schema", "spiked.compare/1"},
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
