#include "validation/equal_bits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace spiked::validation {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// By how much a number moves with the weight of each cluster.
using Influence = std::map<std::string, double>;

struct Estimate {
    double value = 0.0;
    Influence influence;
};

Estimate combined(const Estimate& a, double weight_a, const Estimate& b, double weight_b) {
    Estimate sum{weight_a * a.value + weight_b * b.value, {}};
    for (const auto& [cluster, change] : a.influence) sum.influence[cluster] += weight_a * change;
    for (const auto& [cluster, change] : b.influence) sum.influence[cluster] += weight_b * change;
    return sum;
}

/// exp of an estimate, its error with it.
ClusteredValue exponential(const Estimate& logarithm) {
    double squares = 0.0;
    for (const auto& [cluster, change] : logarithm.influence) squares += change * change;
    const double clusters = static_cast<double>(logarithm.influence.size());
    const double value = std::exp(logarithm.value);
    return {value, clusters > 1.0 ? value * std::sqrt(clusters / (clusters - 1.0) * squares) : nan};
}

struct ClusterTotals {
    std::map<std::string, std::pair<double, double>> sums;  ///< blocks and their sum, by cluster

    [[nodiscard]] Estimate mean() const {
        double count = 0.0;
        double sum = 0.0;
        for (const auto& [cluster, total] : sums) count += total.first, sum += total.second;
        Estimate mean{sum / count, {}};
        for (const auto& [cluster, total] : sums)
            mean.influence[cluster] = (total.second - total.first * mean.value) / count;
        return mean;
    }
};

struct Point {
    Estimate bits;
    Estimate log_error;
};

struct Frontier {
    std::string method;
    std::vector<Point> points;  ///< by rising bits

    [[nodiscard]] double least() const { return points.front().bits.value; }
    [[nodiscard]] double most() const { return points.back().bits.value; }
    /// Between the two points around; a point that moves along its bits moves the line with it.
    [[nodiscard]] Estimate at(double bits) const {
        std::size_t right = 1;
        while (right + 1 < points.size() && points[right].bits.value < bits) ++right;
        const Point& a = points[right - 1];
        const Point& b = points[right];
        const double width = b.bits.value - a.bits.value;
        const double slope = (b.log_error.value - a.log_error.value) / width;
        const double share = (bits - a.bits.value) / width;
        Estimate at = combined(a.log_error, 1.0 - share, b.log_error, share);
        const Estimate moved = combined(a.bits, -slope * (1.0 - share), b.bits, -slope * share);
        for (const auto& [cluster, change] : moved.influence) at.influence[cluster] += change;
        return at;
    }
};

using PointTotals = std::map<std::int64_t, std::pair<ClusterTotals, ClusterTotals>>;  // bits and errors, by method_id

/// Frontiers in the order the methods were asked for.
std::map<std::string, std::vector<Frontier>> frontiers(Database& store, std::string_view metric) {
    std::map<std::string, std::vector<std::pair<std::string, PointTotals>>> sides;
    Statement rows(store,
                   "SELECT side.txt, me.base, m.method_id, mt.name, cl.txt, SUM(m.n), SUM(m.n * m.mean) FROM moment m"
                   " JOIN factor side ON side.cell_id = m.cell_id AND side.name = 'side'"
                   " JOIN factor cl ON cl.cell_id = m.cell_id AND cl.name = 'cluster'"
                   " JOIN method me USING(method_id) JOIN metric mt USING(metric_id)"
                   " WHERE m.n > 0 AND mt.name IN ('bits_per_entry', ?1)"
                   " GROUP BY 1, 3, 4, 5 ORDER BY 1, 3");
    rows.bind(1, std::string(metric));
    while (rows.step()) {
        auto& methods = sides[rows.text(0)];
        auto method =
            std::find_if(methods.begin(), methods.end(), [&](const auto& m) { return m.first == rows.text(1); });
        if (method == methods.end()) method = methods.insert(methods.end(), {rows.text(1), {}});
        auto& [bits, errors] = method->second[rows.integer(2)];
        (rows.text(3) == metric ? errors : bits).sums[rows.text(4)] = {rows.real(5), rows.real(6)};
    }
    std::map<std::string, std::vector<Frontier>> found;
    for (const auto& [side, methods] : sides)
        for (const auto& [name, points] : methods) {
            Frontier frontier{name, {}};
            for (const auto& [id, totals] : points) {
                if (totals.second.sums.empty()) continue;
                const Estimate error = totals.second.mean();
                // What is lossless has no logarithm.
                if (!(error.value > 0.0)) continue;
                Estimate logarithm = combined(error, 1.0 / error.value, {}, 0.0);
                logarithm.value = std::log(error.value);
                frontier.points.push_back({totals.first.mean(), std::move(logarithm)});
            }
            std::sort(frontier.points.begin(), frontier.points.end(),
                      [](const Point& a, const Point& b) { return a.bits.value < b.bits.value; });
            const auto same = [](const Point& a, const Point& b) { return a.bits.value == b.bits.value; };
            if (frontier.points.size() > 1 &&
                std::adjacent_find(frontier.points.begin(), frontier.points.end(), same) == frontier.points.end())
                found[side].push_back(std::move(frontier));
        }
    return found;
}

/// Empty for a method that is not behind `unrope`.
std::string_view without_unrope(std::string_view method) {
    constexpr std::string_view unrope = "unrope+";
    return method.starts_with(unrope) ? method.substr(unrope.size()) : std::string_view();
}

std::vector<double> levels(double least, double most) {
    std::vector<double> levels;
    for (double level = std::ceil(2.0 * least) / 2.0; level <= most; level += 0.5) levels.push_back(level);
    if (levels.empty() && least <= most) levels.push_back(0.5 * (least + most));
    return levels;
}

}  // namespace

std::vector<EqualBits> equal_bits(Database& store) {
    std::vector<EqualBits> found;
    for (const auto& [side, methods] : frontiers(store, "relative_l2")) {
        if (methods.size() < 2) continue;
        double least = 0.0;
        double most = std::numeric_limits<double>::infinity();
        for (const auto& method : methods) {
            least = std::max(least, method.least());
            most = std::min(most, method.most());
        }
        for (const double bits : levels(least, most)) {
            const Estimate first = methods.front().at(bits);
            for (const auto& method : methods) {
                const Estimate own = method.at(bits);
                found.push_back(
                    {side, method.method, bits, exponential(own), exponential(combined(own, 1.0, first, -1.0))});
            }
        }
    }
    return found;
}

std::vector<EqualBits> methods_at(Database& store, double bits, std::string_view metric) {
    std::vector<EqualBits> found;
    for (const auto& [side, methods] : frontiers(store, metric)) {
        const auto stands = [&methods = methods](std::string_view name) {
            return std::any_of(methods.begin(), methods.end(), [&](const auto& m) { return m.method == name; });
        };
        std::vector<std::pair<std::string, Estimate>> around;
        for (const auto& method : methods)
            if (method.least() <= bits && bits <= method.most() &&
                !(side == "value" && stands(without_unrope(method.method))))
                around.emplace_back(method.method, method.at(bits));
        std::stable_sort(around.begin(), around.end(),
                         [](const auto& a, const auto& b) { return a.second.value < b.second.value; });
        for (const auto& [method, own] : around)
            found.push_back(
                {side, method, bits, exponential(own), exponential(combined(own, 1.0, around.front().second, -1.0))});
    }
    return found;
}

bool repeats_without_unrope(const KvTable& table, const KvRow& row) {
    return row.side == "value" && std::any_of(table.rows.begin(), table.rows.end(), [&](const KvRow& other) {
               return other.side == row.side && other.method == without_unrope(row.method);
           });
}

std::vector<bool> convex_hull(const KvTable& table, std::string_view metric) {
    struct Corner {
        std::size_t row;
        double bits;
        double error;
    };
    std::vector<bool> on_hull(table.rows.size(), false);
    std::map<std::string, std::vector<Corner>> sides;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const double error = table.rows[i].of(metric).mean;
        if (error > 0.0)
            sides[table.rows[i].side].push_back({i, table.rows[i].of("bits_per_entry").mean, std::log(error)});
    }
    for (auto& [side, corners] : sides) {
        std::sort(corners.begin(), corners.end(), [](const Corner& a, const Corner& b) {
            return a.bits != b.bits ? a.bits < b.bits : a.error < b.error;
        });
        std::vector<Corner> hull;
        for (const Corner& next : corners) {
            // No more bits for no less error.
            if (!hull.empty() && next.error >= hull.back().error) continue;
            const auto bulges = [&] {
                const Corner& a = hull[hull.size() - 2];
                const Corner& b = hull.back();
                return (b.error - a.error) * (next.bits - a.bits) >= (next.error - a.error) * (b.bits - a.bits);
            };
            while (hull.size() > 1 && bulges()) hull.pop_back();
            hull.push_back(next);
        }
        // Values of a method with and without unrope are the same.
        for (const Corner& corner : corners)
            on_hull[corner.row] = std::any_of(hull.begin(), hull.end(), [&](const Corner& on) {
                return on.bits == corner.bits && on.error == corner.error;
            });
    }
    return on_hull;
}

}  // namespace spiked::validation
