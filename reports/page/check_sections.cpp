#include "reports/page/check_sections.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t passes_unfolded = 20;
constexpr const char* how_to_read =
    "Each row compares the mean of a quantity over the replicates of a cell with what theory predicts. 0.7525(22) is "
    "0.7525 with a standard error of 0.0022. Theory: what the claim predicts at the size of the cell, which can "
    "differ from the limit of large matrices that the results show. Margin: how far the mean may be from theory; a "
    "claim may state a region in place of both. Interval: confidence limits of the mean, at this check's part of the "
    "false-alarm rate (nominal). Detectable: the smallest deviation that would have failed with probability 0.99. "
    "Control: the same interval about what a planted error predicts; it must fail, and a check whose control passes "
    "counts as failed.";

HtmlTable check_table(std::string_view caption) {
    return {caption,
            {"verdict", "check", "cell", "#estimate", "#theory at this size", "#margin", "#interval", "#detectable",
             "#replicates", "#control"}};
}

void add_check(HtmlTable& table, const CheckRow& check, const PagePlace& place) {
    std::string name = escape(check.check);
    std::string details = check.claim == check.check ? "" : escape(check.claim);
    if (check.k > 0) details += fmt::format("{}spike {}", details.empty() ? "" : ", ", check.k);
    if (check.method != "sample") details += (details.empty() ? "" : ", ") + escape(check.method);
    if (!details.empty()) name += "<small>" + details + "</small>";
    const std::string reason =
        check.reason.empty() ? "" : fmt::format("<small class=\"why\">{}</small>", escape(check.reason));
    table.add({verdict_mark(std::string(name_of(check.verdict))), Html::raw(name),
               Html::raw(escape(check.cell) + reason), with_error(check.estimate, check.standard_error), stated(check),
               std::isnan(check.expected) ? Html("") : Html::raw("&plusmn;" + escape(with_digits(check.margin, 3))),
               fmt::format("{} \u2026 {}", four_digits(check.low), four_digits(check.high)),
               with_digits(check.detectable, 2), std::to_string(check.n),
               Html::raw(fmt::format("{}<small>predicts {}</small>", control_text(check.control),
                                     escape(four_digits(check.control_expected))))},
              fmt::format("{}check-{}", place.prefix, check.id));
}

}  // namespace

Html verdict_mark(const std::string& verdict) {
    if (verdict == "none") return "no checks";
    const char* mark = verdict == "pass" ? "\u2713" : verdict == "fail" ? "\u2717" : "?";
    return Html::raw(fmt::format("<span class=\"v {}\">{} {}</span>", escape(verdict), mark, escape(verdict)));
}

std::string verdict_of(const validation::VerdictCounts& counts) {
    return counts.failed > 0 ? "fail" : counts.inconclusive > 0 ? "inconclusive" : counts.passed > 0 ? "pass" : "none";
}

std::string checks_markup(Database& store, const std::vector<CheckRow>& checks, const PagePlace& place,
                          const ShownCells& cells, std::size_t most_bytes) {
    if (checks.empty()) return "";
    std::string markup = paragraph(how_to_read) + cells.note;
    auto open = check_table("");
    auto passed = check_table("");
    for (auto* table : {&open, &passed}) table->limit(most_bytes / 10, "spiked export STORE --table checks");
    std::size_t passes = 0;
    std::size_t hidden = 0;
    std::size_t hidden_bad = 0;
    for (const auto& check : checks) {
        if (!cells.contains(check.cell_id)) {
            ++hidden;
            if (check.verdict != validation::Verdict::pass) ++hidden_bad;
            continue;
        }
        const bool fold = check.verdict == validation::Verdict::pass && ++passes > passes_unfolded;
        add_check(fold ? passed : open, check, place);
    }
    const auto cards = [](const HtmlTable& table) { return "<div class=\"checks\">\n" + table.html() + "</div>\n"; };
    markup += cards(open);
    if (passed.rows() > 0) markup += folded(fmt::format("{} more passed", passed.rows()), cards(passed));
    if (hidden > 0)
        markup += paragraph(
            fmt::format("{} at other cells are left out, {} of them did not pass: spiked export STORE --table checks.",
                        counted(hidden, "check"), hidden_bad));
    HtmlTable claims("Statements of the claims and their controls", {"claim", "place", "statement", "control"});
    Statement query(
        store, "SELECT id, place, statement, control FROM claim WHERE id IN (SELECT claim FROM verdict) ORDER BY id");
    while (query.step()) claims.add({code(query.text(0)), query.text(1), query.text(2), query.text(3)});
    markup += folded("The claims", claims.html());
    return markup;
}

}  // namespace spiked::reports
