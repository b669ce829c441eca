#include "reports/verdicts/junit.hpp"

#include <fmt/format.h>

#include "core/text/markup.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {

std::string junit_xml(validation::Database& store) {
    validation::Statement study(store, "SELECT name FROM study");
    const std::string name = study.step() ? study.text(0) : "";
    validation::Statement check(
        store,
        fmt::format("SELECT v.check_name, {}, v.k, v.estimate, v.mcse, v.expected, v.margin, v.verdict, v.reason, "
                    "m.name, v.allowed_lo, v.allowed_hi, v.control_expected, v.control_verdict, t.statement, t.control "
                    "FROM verdict v JOIN cell c USING(cell_id) LEFT JOIN method m USING(method_id) LEFT JOIN claim t "
                    "ON t.id = v.claim ORDER BY v.verdict_id",
                    judged_cell));
    std::string cases;
    int tests = 0;
    int failures = 0;
    int skipped = 0;
    while (check.step()) {
        ++tests;
        const std::string message =
            with_error(check.real(3), check.real(4)) +
            (check.is_null(5) ? " against " + stated_region(check.real(10), check.real(11))
                              : fmt::format(" against {:.6g}, margin {:.3g}", check.real(5), check.real(6))) +
            (check.text(8).empty() ? "" : "; " + check.text(8));
        cases +=
            fmt::format("  <testcase classname=\"{}\" name=\"{}, {}{}\">", escape(check.text(0)), escape(check.text(1)),
                        escape(check.text(9)), check.integer(2) > 0 ? fmt::format(" spike {}", check.integer(2)) : "");
        if (check.text(7) == "fail") {
            ++failures;
            cases += fmt::format("<failure message=\"{}\"/>", escape(message));
        } else if (check.text(7) == "inconclusive") {
            ++skipped;
            cases += fmt::format("<skipped message=\"inconclusive: {}\"/>", escape(message));
        }
        cases += fmt::format("<system-out>{}\ncontrol {:.6g} ({}): {}\n</system-out></testcase>\n",
                             escape(check.text(14)), check.real(12), escape(check.text(15)), escape(check.text(13)));
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" "
        "skipped=\"{}\">\n{}</testsuite>\n",
        escape(name), tests, failures, skipped, cases);
}

}  // namespace spiked::reports
