#include "reports/tables/metric_words.hpp"

#include <algorithm>
#include <map>

#include "validation/statistics/statistics.hpp"

namespace spiked::reports {
namespace {

/// The metric of that name; null if this program does not know it, because a newer version wrote the store.
const validation::Metric* known_metric(std::string_view name) { return validation::metrics().find(name); }

bool is_fraction(std::string_view name) {
    const auto* metric = known_metric(name);
    return metric != nullptr && (metric->unit == "share" || metric->unit == validation::share_of_replicates);
}

std::string with_percent_sign(std::string heading, std::string_view metric) {
    return heading + (!heading.empty() && is_fraction(metric) ? " %" : "");
}

}  // namespace

const std::vector<std::string>& metrics_of(MetricGroup group) {
    static const auto groups = [] {
        std::map<MetricGroup, std::vector<std::string>> all;
        std::vector<validation::Metric> columns = validation::metrics().rows();
        std::stable_sort(columns.begin(), columns.end(),
                         [](const auto& a, const auto& b) { return a.text.column < b.text.column; });
        for (const auto& metric : columns) all[metric.text.group].push_back(metric.name);
        return all;
    }();
    return groups.at(group);
}

const std::vector<std::string>& frontier_metrics() {
    static const auto names = [] {
        std::vector<std::string> all;
        for (const auto& metric : validation::metrics())
            if (metric.text.frontier) all.push_back(metric.name);
        return all;
    }();
    return names;
}

std::string heading_of(std::string_view name) {
    const auto* metric = known_metric(name);
    return metric == nullptr ? "" : with_percent_sign(metric->text.heading, name);
}

std::string narrow_heading_of(std::string_view name) {
    const auto* metric = known_metric(name);
    return metric == nullptr || metric->text.narrow.empty() ? heading_of(name)
                                                            : with_percent_sign(metric->text.narrow, name);
}

std::string long_name_of(std::string_view name) {
    if (const auto* metric = known_metric(name); metric != nullptr && !metric->text.long_name.empty())
        return metric->text.long_name;
    std::string plain(name);
    std::replace(plain.begin(), plain.end(), '_', ' ');
    return plain;
}

std::vector<std::string> long_names_of(const std::vector<std::string>& metrics) {
    std::vector<std::string> names;
    for (const auto& metric : metrics) names.push_back(long_name_of(metric));
    return names;
}

std::string column_name_of(std::string_view name) {
    const auto* metric = known_metric(name);
    return metric == nullptr || metric->text.heading.empty() ? long_name_of(name) : metric->text.heading;
}

double shown_error(std::string_view metric, double mean, double standard_error, std::int64_t count) {
    const auto* known = known_metric(metric);
    const bool of_zero_and_one = known != nullptr && known->unit == validation::share_of_replicates;
    if (!of_zero_and_one || (mean != 0.0 && mean != 1.0) || count < 1) return standard_error;
    const auto trials = static_cast<std::uint64_t>(count);
    return validation::fraction_error(mean == 1.0 ? trials : 0, trials);
}

double scale_of(std::string_view metric) { return is_fraction(metric) ? 100.0 : 1.0; }

double usual_size_of(std::string_view metric) {
    const auto* known = known_metric(metric);
    const bool of_data = known == nullptr || known->unit == "eigenvalue" || known->unit == "singular value";
    return of_data ? 0.0 : 1.0;
}

}  // namespace spiked::reports
