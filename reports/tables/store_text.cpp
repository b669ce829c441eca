#include "reports/tables/store_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/text/names.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

constexpr std::size_t most_passes_shown = 20;  // with more, only the closest pass of each claim is shown

/// The largest distance of the interval from the middle of the region in units of the margin; above 1 a check fails to
/// pass.
double nearness(const CheckRow& check) { return std::max(check.margins_off(check.low), check.margins_off(check.high)); }

}  // namespace

std::string checks_text(validation::Database& store) {
    const auto checks = read_checks(store);
    validation::Statement study(store, "SELECT false_alarm FROM study");
    const double false_alarm = study.step() ? study.real(0) : std::nan("");
    const auto counts = count_checks(checks);
    const bool folds = counts.passed > most_passes_shown;
    TextTable rows({"claim", "cell", "estimate", "theory", "margin", "detectable", "verdict", "control"}, 2);
    const auto add = [&](const CheckRow& check, const std::string& note) {
        // Of close spikes the claim is judged by the metric of their subspace, of spikes in a gap by those of the gap.
        const bool of_metric = check.metric.starts_with("subspace_") || check.metric.starts_with("gap_");
        const std::string& name = of_metric ? check.metric : check.claim;
        rows.add({check.k > 0 ? fmt::format("{} k={}", name, check.k) : name, check.cell + note,
                  with_error(check.estimate, check.standard_error), stated(check),
                  std::isnan(check.expected) ? "" : "+-" + with_digits(check.margin, 3),
                  with_digits(check.detectable, 2), std::string(name_of(check.verdict)),
                  std::string(control_text(check.control))});
    };
    // For each claim, metric and spike: the number of passes, and the one whose interval comes closest to its margin.
    std::vector<std::pair<std::size_t, const CheckRow*>> passed;
    std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> index_of;
    for (const auto& check : checks) {
        if (check.verdict != validation::Verdict::pass || !folds) {
            add(check, "");
            continue;
        }
        const auto [index, is_first] = index_of.try_emplace({check.claim, check.metric, check.k}, passed.size());
        if (is_first) {
            passed.emplace_back(1, &check);
            continue;
        }
        auto& [count, closest] = passed[index->second];
        ++count;
        if (nearness(check) > nearness(*closest)) closest = &check;
    }
    for (const auto& [count, check] : passed) add(*check, count > 1 ? fmt::format(" (closest of {})", count) : "");
    std::string text = checks.empty() ? "" : rows.text() + "\n";
    if (!checks.empty()) text += "detectable: the smallest deviation that would have failed with probability 0.99.\n";
    if (folds)
        text += fmt::format("Of the passes of a claim only the one closest to its margin is shown{}\n",
                            store.path() == ":memory:" ? "."
                                                       : fmt::format("; all of them: spiked show {} --table checks",
                                                                     shell_word(store.path())));
    return text +
           fmt::format("{}; nominal false-alarm rate for the whole run {:g}\n", counts_text(counts), false_alarm);
}

}  // namespace spiked::reports
