#include "validation/kv/equal_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "estimators/compressors/compressor.hpp"

namespace spiked::validation {
namespace {

/// The exponential of an estimate, with its error to first order.
MeanAndError exponential(const PartEstimate& logarithm) {
    const double value = std::exp(logarithm.value);
    const MeanAndError found = logarithm.mean_and_error();
    return {value, value * found.mcse, found.df};
}

struct Point {
    PartEstimate bits;
    PartEstimate log_error;
};

struct Frontier {
    std::string method;
    std::vector<Point> points;  ///< by increasing bits

    [[nodiscard]] double least() const { return points.front().bits.value; }
    [[nodiscard]] double most() const { return points.back().bits.value; }
    /// Linear interpolation between the two neighbouring points, including the influence of their bits on the result.
    [[nodiscard]] PartEstimate at(double bits) const {
        std::size_t right = 1;
        while (right + 1 < points.size() && points[right].bits.value < bits) ++right;
        const Point& a = points[right - 1];
        const Point& b = points[right];
        const double width = b.bits.value - a.bits.value;
        const double slope = (b.log_error.value - a.log_error.value) / width;
        const double share = (bits - a.bits.value) / width;
        const PartEstimate errors = combined(a.log_error, 1.0 - share, b.log_error, share);
        const PartEstimate from_bits = combined(a.bits, -slope * (1.0 - share), b.bits, -slope * share);
        PartEstimate at = combined(errors, 1.0, from_bits, 1.0);
        at.value = errors.value;
        return at;
    }
};

using PointTotals = std::map<std::int64_t, std::pair<Parts, Parts>>;  // bits and errors, by method_id

/// The methods of a side or a cell, in the order of the study.
struct Group {
    std::string name;
    std::vector<Frontier> methods;
};

std::vector<Group> frontiers(Database& store, std::string_view metric) {
    struct Totals {
        std::string group;
        std::vector<std::pair<std::string, PointTotals>> methods;
        std::map<std::string, std::size_t> place_of;  ///< index of a method by name
    };
    std::vector<Totals> groups;
    std::map<std::string, std::int64_t> clusters;
    const bool dump = store.integer("SELECT EXISTS(SELECT 1 FROM factor WHERE name = 'cluster')") != 0;
    // group, method, method_id, metric, cluster, blocks, sum
    Statement rows(store,
                   dump ? "SELECT side.txt, me.base, m.method_id, mt.name, cl.txt, SUM(m.n), SUM(m.n * m.mean) FROM "
                          "moment m JOIN factor side ON side.cell_id = m.cell_id AND side.name = 'side' JOIN factor cl "
                          "ON cl.cell_id = m.cell_id AND cl.name = 'cluster'"
                          " JOIN method me USING(method_id) JOIN metric mt USING(metric_id) WHERE m.n > 0 AND mt.name "
                          "IN ('bits_per_entry', ?1)"
                          " GROUP BY 1, 3, 4, 5 ORDER BY 1, 3"
                        : "SELECT c.label, me.base, m.method_id, mt.name, m.batch, m.n, m.n * m.mean FROM moment m"
                          " JOIN cell c USING(cell_id) JOIN method me USING(method_id) JOIN metric mt USING(metric_id)"
                          " WHERE m.n > 0 AND me.kind = 'codec' AND mt.name IN ('bits_per_entry', ?1) ORDER BY "
                          "m.cell_id, m.method_id, m.batch");
    rows.bind(1, std::string(metric));
    while (rows.step()) {
        if (groups.empty() || groups.back().group != rows.text(0)) groups.push_back({rows.text(0), {}, {}});
        auto& methods = groups.back().methods;
        const auto [place, first] = groups.back().place_of.try_emplace(rows.text(1), methods.size());
        if (first) methods.push_back({rows.text(1), {}});
        auto& [bits, errors] = methods[place->second].second[rows.integer(2)];
        const auto cluster = clusters.emplace(rows.text(4), static_cast<std::int64_t>(clusters.size())).first->second;
        (rows.text(3) == metric ? errors : bits).sums[cluster] = {rows.real(5), rows.real(6)};
    }
    std::vector<Group> found;
    for (const auto& [group, methods, place_of] : groups) {
        found.push_back({group, {}});
        for (const auto& [name, points] : methods) {
            Frontier frontier{name, {}};
            for (const auto& [id, totals] : points) {
                if (totals.first.sums.empty() || totals.second.sums.empty()) continue;
                const PartEstimate error = totals.second.mean();
                // The logarithm of a lossless result does not exist.
                if (!(error.value > 0.0)) continue;
                PartEstimate logarithm = combined(error, 1.0 / error.value, {}, 0.0);
                logarithm.value = std::log(error.value);
                frontier.points.push_back({totals.first.mean(), std::move(logarithm)});
            }
            std::sort(frontier.points.begin(), frontier.points.end(),
                      [](const Point& a, const Point& b) { return a.bits.value < b.bits.value; });
            const auto same = [](const Point& a, const Point& b) { return a.bits.value == b.bits.value; };
            if (!frontier.points.empty() &&
                std::adjacent_find(frontier.points.begin(), frontier.points.end(), same) == frontier.points.end())
                found.back().methods.push_back(std::move(frontier));
        }
    }
    return found;
}

bool has_range(const Frontier& method) { return method.points.size() > 1; }

/// The methods whose range contains the number of bits that most ranges contain (the smallest such number).
std::vector<const Frontier*> comparable(const std::vector<Frontier>& methods) {
    std::vector<double> begins;
    std::vector<double> ends;
    for (const auto& method : methods)
        if (has_range(method)) {
            begins.push_back(method.least());
            ends.push_back(method.most());
        }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    const auto around = [&](double bits) {  // number of ranges that contain it
        return std::upper_bound(begins.begin(), begins.end(), bits) - begins.begin() -
               (std::lower_bound(ends.begin(), ends.end(), bits) - ends.begin());
    };
    const Frontier* best = nullptr;
    for (const auto& at : methods)
        if (best == nullptr || around(at.least()) > around(best->least())) best = &at;
    std::vector<const Frontier*> found;
    for (const auto& method : methods)
        if (has_range(method) && method.least() <= best->least() && best->least() <= method.most())
            found.push_back(&method);
    return found;
}

std::vector<double> levels(double least, double most) {
    constexpr double widest = 64.0;  // bits of a double, the most that a method stores per entry
    std::vector<double> levels;
    for (double level = std::ceil(2.0 * least) / 2.0; level <= std::min(most, widest); level += 0.5)
        levels.push_back(level);
    if (levels.empty() && least <= most) levels.push_back(0.5 * (least + most));
    return levels;
}

}  // namespace

std::vector<std::string> EqualBitsTable::groups() const {
    std::vector<std::string> names;
    std::set<std::string> known;
    const auto add = [&](const std::string& name) {
        if (known.insert(name).second) names.push_back(name);
    };
    for (const auto& row : rows) add(row.group);
    for (const auto& method : outside) add(method.group);
    return names;
}

std::string EqualBitsTable::outside_text(const std::string& group) const {
    std::vector<std::string> names;
    for (const auto& method : outside)
        if (method.group == group)
            names.push_back(method.least == method.most
                                ? fmt::format("{} ({:.4g} bits only)", method.method, method.least)
                                : fmt::format("{} ({:.4g} to {:.4g} bits)", method.method, method.least, method.most));
    return names.empty() ? ""
                         : fmt::format("Not compared, measured around no number of bits that the others are: {}.",
                                       fmt::join(names, ", "));
}

EqualBitsTable equal_bits(Database& store) {
    EqualBitsTable found;
    for (const auto& [group, all] : frontiers(store, "relative_l2")) {
        if (std::count_if(all.begin(), all.end(), has_range) < 2) continue;
        const auto methods = comparable(all);
        double least = 0.0;
        double most = std::numeric_limits<double>::infinity();
        const std::set<const Frontier*> compared(methods.begin(), methods.end());
        for (const auto& method : all)
            if (!compared.contains(&method) || methods.size() < 2)
                found.outside.push_back({group, method.method, method.least(), method.most()});
        if (methods.size() < 2) continue;
        for (const auto* method : methods) {
            least = std::max(least, method->least());
            most = std::min(most, method->most());
        }
        for (const double bits : levels(least, most)) {
            const PartEstimate first = methods.front()->at(bits);
            for (const auto* method : methods) {
                const PartEstimate own = method->at(bits);
                found.rows.push_back(
                    {group, method->method, bits, exponential(own), exponential(combined(own, 1.0, first, -1.0))});
            }
        }
    }
    return found;
}

std::vector<EqualBits> methods_at(Database& store, double bits, std::string_view metric) {
    std::vector<EqualBits> found;
    for (const auto& [side, methods] : frontiers(store, metric)) {
        std::set<std::string, std::less<>> names;
        for (const auto& method : methods) names.insert(method.method);
        const auto repeats = [&](const std::string& method) {
            const std::string_view plain = estimators::without_unrope(method);
            return plain != method && names.contains(plain);
        };
        std::vector<std::pair<std::string, PartEstimate>> around;
        for (const auto& method : methods)
            if (has_range(method) && method.least() <= bits && bits <= method.most() &&
                !(side == "value" && repeats(method.method)))
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
    const std::string_view name = estimators::without_unrope(row.method);
    return row.side == "value" && name != row.method &&
           std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const KvRow& other) { return other.side == row.side && other.method == name; });
}

std::vector<bool> convex_hull(const std::vector<BitsAndError>& points) {
    // A point without detectable loss has no logarithm, and points with more bits are never on the hull.
    constexpr double never = std::numeric_limits<double>::infinity();
    double lossless = never;
    for (const auto& point : points)
        if (point.error <= 0.0) lossless = std::min(lossless, point.bits);
    std::vector<BitsAndError> corners;
    for (const auto& point : points)
        if (point.error > 0.0 && point.bits < lossless) corners.push_back({point.bits, std::log(point.error)});
    std::sort(corners.begin(), corners.end(),
              [](const auto& a, const auto& b) { return a.bits != b.bits ? a.bits < b.bits : a.error < b.error; });
    std::vector<BitsAndError> hull;
    for (const auto& next : corners) {
        // More bits must reduce the error.
        if (!hull.empty() && next.error >= hull.back().error) continue;
        const auto bulges = [&] {
            const auto& a = hull[hull.size() - 2];
            const auto& b = hull.back();
            return (b.error - a.error) * (next.bits - a.bits) >= (next.error - a.error) * (b.bits - a.bits);
        };
        while (hull.size() > 1 && bulges()) hull.pop_back();
        hull.push_back(next);
    }
    // Two methods at the same point are both on the hull, for example values with and without unrope.
    std::set<std::pair<double, double>> hull_corners;
    for (const auto& on : hull) hull_corners.emplace(on.bits, on.error);
    std::vector<bool> on_hull;
    for (const auto& point : points)
        on_hull.push_back(point.error > 0.0 ? hull_corners.contains({point.bits, std::log(point.error)})
                                            : point.error <= 0.0 && point.bits == lossless);
    return on_hull;
}

std::vector<bool> convex_hull(const KvTable& table, std::string_view metric) {
    std::vector<bool> on_hull(table.rows.size(), false);
    std::map<std::string, std::vector<std::size_t>> sides;
    for (std::size_t i = 0; i < table.rows.size(); ++i) sides[table.rows[i].side].push_back(i);
    for (const auto& [side, rows] : sides) {
        std::vector<BitsAndError> points;
        for (const auto row : rows)
            points.push_back({table.rows[row].of("bits_per_entry").mean, table.rows[row].of(metric).mean});
        const auto found = convex_hull(points);
        for (std::size_t i = 0; i < rows.size(); ++i) on_hull[rows[i]] = found[i];
    }
    return on_hull;
}

}  // namespace spiked::validation
