#include "reports/page/claim_page.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "core/text/markup.hpp"
#include "reports/page/html.hpp"
#include "reports/tables/claim_report.hpp"

namespace spiked::reports {

std::string claims_html(const validation::Validation& validation, std::string_view origin) {
    std::string page = page_head("The paper, statement by statement", "spiked validate");
    page +=
        fmt::format("<h1>The paper, statement by statement</h1>\n<p class=\"note\">{}</p>\n<p class=\"note\">{}</p>\n",
                    escape(origin), escape(claims_legend(validation)));
    HtmlTable verdicts("", {"claim", "statement", "printed", "corrected"});
    std::string sections;
    std::size_t number = 0;
    for (const auto& claim : validation.claims) {
        const std::string id = fmt::format("claim-{}", ++number);
        verdicts.add({Html::raw(fmt::format("<a href=\"#{}\">{}</a>", id, escape(claim_title(claim)))),
                      claim.claim->statement, name_of(claim.printed), corrected_verdict(claim)});
        HtmlTable evidence("", {"form", "measured", "where", "#value", "#allowed", "#detectable", "verdict"});
        for (const auto& cells : evidence_rows(claim)) evidence.add(std::vector<Html>(cells.begin(), cells.end()));
        sections += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n<p><b>{}</b>: {}. <i>{}.</i></p>\n", id,
                                escape(claim_title(claim)), name_of(claim.printed), escape(claim.claim->statement),
                                escape(claim.claim->place));
        if (!claim.claim->corrected.empty())
            sections += fmt::format("<p><b>Corrected, {}</b>: {}.</p>\n", name_of(claim.corrected),
                                    escape(claim.claim->corrected));
        sections += evidence.html() + "</section>\n";
    }
    return (page + verdicts.html() + sections).append(page_end);
}

}  // namespace spiked::reports
