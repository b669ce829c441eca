#include "app/commands/spectrum_intervals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "reports/tables/text_table.hpp"

namespace spiked::app {
namespace {

Json interval_json(const std::optional<estimators::Interval>& interval) {
    if (!interval) return {};
    Json ends = Json::array();
    ends.push(interval->low);
    ends.push(interval->high);
    return ends;
}

}  // namespace

Json intervals_json(const Uncertainty& of) {
    if (!of.components) return {};
    Json strength = Json::array(), left = Json::array(), right = Json::array(), reasons = Json::array();
    for (const estimators::SpikeIntervals& component : *of.components) {
        strength.push(interval_json(component.strength));
        left.push(interval_json(component.overlap_left));
        right.push(interval_json(component.overlap_right));
        reasons.push(component.reason.empty() ? Json() : Json(component.reason));
    }
    return Json::object({{"method", enum_name(of.method)},
                         {"confidence", of.confidence},
                         {"strength", std::move(strength)},
                         {"overlap_left", std::move(left)},
                         {"overlap_right", std::move(right)},
                         {"reasons", std::move(reasons)}});
}

std::string intervals_text(const Uncertainty& of) {
    if (!of.components || of.components->empty()) return "";
    const estimators::SpikeIntervals& first = of.components->front();
    const bool none = std::all_of(of.components->begin(), of.components->end(), [&](const auto& component) {
        return !component.strength && component.reason == first.reason;
    });
    if (none) return fmt::format("  no intervals: {}\n", first.reason);
    std::string text = fmt::format("  {} % intervals of strength and overlaps ({}):\n",
                                   reports::percentage(of.confidence), enum_name(of.method));
    for (std::size_t i = 0; i < of.components->size(); ++i) {
        const estimators::SpikeIntervals& component = (*of.components)[i];
        std::vector<std::string> parts;
        const auto add = [&](const char* what, const std::optional<estimators::Interval>& interval) {
            if (interval)
                parts.push_back(fmt::format("{} {} to {}", what, reports::four_digits(interval->low),
                                            reports::four_digits(interval->high)));
        };
        add("strength", component.strength);
        add("left", component.overlap_left);
        add("right", component.overlap_right);
        if (!component.reason.empty()) parts.push_back(parts.empty() ? "none: " + component.reason : component.reason);
        text += fmt::format("  {}: {}\n", i + 1, fmt::join(parts, "; "));
    }
    return text;
}

}  // namespace spiked::app
