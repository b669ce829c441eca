#include "reports/page/claim_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <set>
#include <vector>

#include "core/text/markup.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/page/html.hpp"
#include "reports/tables/claim_report.hpp"
#include "validation/verdicts/claim_study.hpp"

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
            sections += fmt::format("<p><b>Largest fault that would not fail</b>: {}.</p>\n",
                                    escape(closest_fault_text(claim)));
        sections += evidence.html() + "</section>\n";
    }
    std::string legend;
    for (const auto& [word, meaning] : claims_legend(validation))
        legend += fmt::format("<li><b>{}</b>: {}</li>\n", escape(word), escape(meaning));
    return (page + verdicts.html() + folded("How to read the verdicts", "<ul>\n" + legend + "</ul>\n") + sections)
        .append(page_end);
}

std::string dumps_page_of(const std::string& path) {
    const std::filesystem::path page(path);
    return (page.parent_path() / (page.stem().string() + "-dumps" + page.extension().string())).string();
}

namespace {

/// A text of a store, which may come from elsewhere, where Markdown would take some of its characters for markup.
std::string plain(std::string text) {
    text = one_line(text);
    for (char& c : text)
        if (std::string_view("<>&`|").find(c) != std::string_view::npos) c = '?';
    return text;
}

}  // namespace

std::string claims_origin(validation::Database& store, const validation::Validation& found) {
    const validation::ValidationPlan plan = validation::ClaimStore(store).plan();
    std::string words;
    validation::Statement input(store,
                                "SELECT coalesce(json_extract(meta, '$.absolute_path'), path) FROM input GROUP BY 1 "
                                "ORDER BY min(input_id)");
    while (input.step()) words += " " + plain(shell_word(std::filesystem::path(input.text(0)).filename().string()));
    const std::set<std::string> judged(plan.claims.begin(), plan.claims.end());
    const auto is_judged = [&](const validation::Claim& claim) { return judged.contains(claim.id); };
    const auto& all = validation::claims();
    if (!std::all_of(all.begin(), all.end(), is_judged))
        words += plain(fmt::format(" --claim {}", fmt::join(judged, ",")));
    validation::Statement session(
        store,
        "SELECT substr(started_utc, 1, 10), json_extract(provenance, '$.version'), json_extract(provenance, "
        "'$.commit'), status FROM session, study ORDER BY session_id DESC LIMIT 1");
    const bool any = session.step();
    std::string text =
        fmt::format("Made by `spiked validate{} --tier {} --seed {}`", words, enum_name(plan.tier), plan.seed.text());
    if (any)
        text += fmt::format(" on {}, spiked {} ({})", plain(session.text(0)), plain(session.text(1)),
                            plain(session.text(2)));
    text += ".";
    if (any && session.text(3) != "complete")
        text += fmt::format(" The store is not complete ({}).", plain(session.text(3)));
    validation::Statement declared(store, "SELECT false_alarm FROM main.study");
    if (declared.step() && declared.real(0) != found.false_alarm)
        text += fmt::format(" Judged again at a false-alarm rate of {:g}, which is {:g} in the store.",
                            found.false_alarm, declared.real(0));
    if (found.lacking > 0)
        text +=
            " " + lacking_cells(found.lacking, "the store") + ": the same command with `-o` and this store draws them.";
    return text;
}

std::vector<ClaimPage> claim_pages(validation::Database& store, const validation::Validation& validation,
                                   const std::string& path) {
    std::string origin = claims_origin(store, validation);
    if (validation.left_out > 0)
        origin +=
            fmt::format(" {} of {} claims are left out, because their dumps or some of their trials are not there.",
                        validation.left_out, validation.left_out + validation.claims.size());
    const auto page_of = [&](const validation::Validation& claims, const std::string& says) {
        return path.ends_with(".md") ? claims_markdown(claims, says) : claims_html(claims, says);
    };
    const auto on_dumps = claims_where(validation, true);
    if (on_dumps.claims.empty()) return {{path, page_of(validation, origin)}};
    const std::string beside = dumps_page_of(path);
    return {{path,
             page_of(claims_where(validation, false), fmt::format("{} What was found on dumps is in {}.", origin,
                                                                  std::filesystem::path(beside).filename().string()))},
            {beside, page_of(on_dumps, origin)}};
}

std::string summary_html(const ClaimSummary& summary, std::string_view origin) {
    std::string page = page_head(summary_title, "spiked validate");
    page += fmt::format("<h1>{}</h1>\n{}", summary_title, paragraph(fmt::format("{} {}", origin, summary.tier)));
    page += paragraph(summary.reading);
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
