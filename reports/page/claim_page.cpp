#include "reports/page/claim_page.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <vector>

#include "core/text/markup.hpp"
#include "reports/page/html.hpp"
#include "reports/tables/claim_report.hpp"

namespace spiked::reports {

std::string claims_html(const validation::Validation& validation, std::string_view origin, std::string_view generator) {
    std::string page = page_head("The paper, statement by statement", generator);
    page += fmt::format("<h1>The paper, statement by statement</h1>\n{}", paragraph(origin));
    HtmlTable verdicts("", {"claim", "statement", "kind", "printed", "corrected"});
    std::string sections;
    std::size_t number = 0;
    for (const auto& claim : validation.claims) {
        const std::string id = fmt::format("claim-{}", ++number);
        verdicts.add({Html::raw(fmt::format("<a href=\"#{}\">{}</a>", id, escape(claim_title(claim)))),
                      claim.claim->statement, claim_kind(claim), name_of(claim.printed), corrected_verdict(claim)});
        HtmlTable evidence("", {"form", "measured", "where", "#value", "#allowed", "#detectable", "verdict"});
        for (const auto& cells : evidence_rows(claim)) evidence.add(std::vector<Html>(cells.begin(), cells.end()));
        sections += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n<p><b>{}</b>: {}. <i>{}.</i></p>\n", id,
                                escape(claim_title(claim)), name_of(claim.printed), escape(claim.claim->statement),
                                escape(claim.claim->place));
        if (!claim.claim->corrected.empty())
            sections += fmt::format("<p><b>Corrected, {}</b>: {}.</p>\n", name_of(claim.corrected),
                                    escape(claim.claim->corrected));
        if (!claim.claim->note.empty()) sections += fmt::format("<p><b>Note</b>: {}.</p>\n", escape(claim.claim->note));
        if (claim.closest_fault)
            sections += fmt::format("<p><b>Closest fault that would still pass</b>: {}.</p>\n",
                                    escape(closest_fault_text(claim)));
        sections += evidence.html() + "</section>\n";
    }
    return (page + verdicts.html() + folded("How to read the verdicts", paragraph(claims_legend(validation))) +
            sections)
        .append(page_end);
}

std::string summary_html(const ClaimSummary& summary, std::string_view origin) {
    std::string page = page_head(summary_title, "spiked validate");
    page += fmt::format("<h1>{}</h1>\n{}", summary_title, paragraph(fmt::format("{} {}", origin, summary.tier)));
    for (const auto& group : summary.groups) {
        HtmlTable table("", {std::begin(summary_columns), std::end(summary_columns)});
        for (const auto& row : group.rows)
            table.add({code(row.claim), row.says, row.measured, row.allowed, row.closest});
        page += fmt::format("<h2>{}</h2>\n{}", escape(group.title), table.html());
    }
    page += fmt::format("<section class=\"losses\">\n<h2>{}</h2>\n<dl>\n", losses_title);
    for (const auto& loss : summary.losses)
        page += fmt::format("<dt>{}</dt><dd>{} <small>({})</small></dd>\n", escape(loss.title), escape(loss.text),
                            escape(loss.source));
    return page.append("</dl>\n</section>\n").append(page_end);
}

}  // namespace spiked::reports
