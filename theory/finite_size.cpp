#include "theory/finite_size.hpp"

#include <algorithm>
#include <cmath>

#include "theory/tracy_widom.hpp"

namespace spiked::theory {

FiniteSize finite_size(const SeparableLaw& law, std::size_t rows, std::size_t columns, double level) {
    if (rows == 0 || columns == 0)
        throw usage_error("size {}x{} is not usable (a matrix has rows and columns): give NxD", rows, columns);
    const double aspect = AspectRatio::of(rows, columns).value();
    if (std::abs(aspect - law.aspect().value()) > 1e-9 * law.aspect().value())
        throw usage_error(
            "size {}x{} does not fit the law (rows over columns is {}, the aspect ratio {}): change one "
            "of them",
            rows, columns, aspect, law.aspect().value());
    const double upper_quantile = tracy_widom_upper_quantile(level);

    FiniteSize result;
    result.rows = rows;
    result.columns = columns;
    const double shorter = static_cast<double>(std::min(rows, columns));
    const double edge = law.bulk_edge().value;
    const double unit = 1.0 / (law.tracy_widom_scale() * std::pow(static_cast<double>(columns), 2.0 / 3.0));
    result.top_noise_shift = tracy_widom_mean * unit;
    result.top_noise_standard_deviation = std::sqrt(tracy_widom_variance) * unit;
    result.regularity = law.edge_regularity(3.0 / shorter);

    const auto add = [&](std::string name, double cutoff) {
        RankRule rule;
        rule.name = std::move(name);
        rule.cutoff = {cutoff};
        // Below the edge the limit has no outlier to show, whatever the rule counts.
        rule.smallest_strength = cutoff > edge ? law.strength_of({cutoff}) : law.detection_threshold();
        rule.false_alarm_probability = tracy_widom_survival((cutoff - edge) / unit);
        rule.expected_false_alarms = edge_points_above((cutoff - edge) / unit);
        result.rules.push_back(std::move(rule));
    };
    add("eoptshrink", edge * (1.0 + 1.0 / std::cbrt(shorter)));
    add("eoptshrink:margin=0", edge);
    add(fmt::format("tw-test:level={:g}", level), edge + upper_quantile * unit);
    return result;
}

}  // namespace spiked::theory
