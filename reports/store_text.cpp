#include "reports/store_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/store_queries.hpp"
#include "reports/text_table.hpp"

namespace spiked::reports {

std::string checks_text(validation::Database& store) {
    const auto checks = read_checks(store);
    validation::Statement study(store, "SELECT false_alarm FROM study");
    const double false_alarm = study.step() ? study.real(0) : std::nan("");
    std::string text;
    if (!checks.empty()) {
        TextTable rows({"claim", "cell", "estimate", "theory", "margin", "detectable", "verdict", "control"}, 2);
        for (const auto& check : checks)
            rows.add({check.k > 0 ? fmt::format("{} k={}", check.claim, check.k) : check.claim, check.cell,
                      with_error(check.estimate, check.standard_error), fmt::format("{:.4g}", check.expected),
                      fmt::format("+-{:.3g}", check.margin), number(check.detectable, 2), check.verdict,
                      check.control == "pass"   ? "passes: sees nothing"
                      : check.control == "fail" ? "fails, as it must"
                                                : "inconclusive"});
        text += rows.text() + "\n";
    }
    if (!checks.empty()) text += "detectable: the smallest deviation that would have failed with probability 0.99.\n";
    return text +
           fmt::format("{}; false-alarm rate for the whole run {:g}\n", counts_text(count_checks(checks)), false_alarm);
}

}  // namespace spiked::reports
