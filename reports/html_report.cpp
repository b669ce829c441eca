#include "reports/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "reports/figures.hpp"
#include "reports/gnuplot.hpp"
#include "reports/html.hpp"
#include "reports/store_queries.hpp"
#include "reports/text_table.hpp"
#include "sim/output_file.hpp"
#include "sim/printable.hpp"
#include "theory/base/error.hpp"
#include "validation/store.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t all_cells_up_to = 200;
constexpr std::size_t worst_cells_shown = 50;
constexpr std::size_t passes_unfolded = 20;
constexpr std::size_t failures_shown = 50;
constexpr std::size_t data_rows_shown = 200;
constexpr std::size_t sessions_shown = 50;
constexpr std::size_t inputs_shown = 200;
constexpr std::size_t long_text = 200'000;  // bytes of a configuration shown

std::string number(double value, int digits = 4) {
    return std::isnan(value) ? "-" : fmt::format("{:.{}g}", value, digits);
}

/// What theory says, to as many digits as stand beside it: 0.7500.
std::string predicted(double value) {
    if (std::isnan(value) || value == 0.0) return number(value);
    std::string text = fmt::format("{:#.4g}", value);
    if (text.ends_with('.')) text.pop_back();
    return text;
}

Html code(std::string_view text) { return Html::raw("<code>" + escape(text) + "</code>"); }

std::string paragraph(std::string_view text, std::string_view css_class = "note") {
    return fmt::format("<p class=\"{}\">{}</p>\n", css_class, escape(text));
}

std::string section(std::string_view id, std::string_view title, const std::string& markup) {
    return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, escape(title), markup);
}

std::string preformatted(const std::string& text) {
    const std::string end =
        text.size() > long_text ? fmt::format("\n... {} bytes more; the store has them", text.size() - long_text) : "";
    return "<pre>" + escape(std::string_view(text).substr(0, long_text)) + escape(end) + "</pre>\n";
}

/// The word and a mark beside it: colour alone tells nothing.
Html verdict_mark(const std::string& verdict) {
    const char* mark = verdict == "pass" ? "\u2713" : verdict == "fail" ? "\u2717" : "?";
    return Html::raw(fmt::format("<span class=\"v {}\">{} {}</span>", escape(verdict), mark, escape(verdict)));
}

struct Study {
    std::string name, title, kind, config_source, config_resolved, science_hash, seed, seed_source;
    double false_alarm = 0.0;
    std::string backend, status, created;
};

Study read_study(Database& store) {
    Statement query(
        store,
        "SELECT name, title, kind, config_source, config_resolved, science_hash, seed, seed_source, false_alarm, "
        "backend, status, created_utc FROM study");
    if (!query.step())
        throw input_error("{}: the store holds no study (one row is expected): run the study again", store.path());
    return {query.text(0), query.text(1), query.text(2), query.text(3), query.text(4),  query.text(5),
            query.text(6), query.text(7), query.real(8), query.text(9), query.text(10), query.text(11)};
}

struct Progress {
    std::int64_t cells, cells_done, replicates, least, target, failed, sessions;
};

Progress read_progress(Database& store) {
    return {store.integer("SELECT COUNT(*) FROM cell"),
            store.integer("SELECT COUNT(*) FROM cell WHERE state = 'done'"),
            store.integer("SELECT coalesce(SUM(reps), 0) FROM batch"),
            store.integer("SELECT coalesce(SUM(reps_least), 0) FROM cell"),
            store.integer("SELECT coalesce(SUM(reps_target), 0) FROM cell"),
            store.integer("SELECT coalesce(SUM(failed), 0) FROM batch"),
            store.integer("SELECT COUNT(*) FROM session")};
}

/// One page of one store.
class Page {
public:
    Page(Database& store, const ReportOptions& options)
        : store_(store),
          options_(options),
          study_(read_study(store)),
          progress_(read_progress(store)),
          checks_(read_checks(store)),
          dump_(study_.kind == "kv_dump") {
        some_cells_ = progress_.cells > static_cast<std::int64_t>(all_cells_up_to);
        if (some_cells_) {
            const auto ids = worst_cells(store, checks_, worst_cells_shown);
            shown_.insert(ids.begin(), ids.end());
        }
    }

    std::string html() {
        std::string page = page_head(study_.name, "spiked report");
        page += heading();
        page += band();
        page += checks();
        page += figures();
        page += results();
        page += ledger();
        page += failures();
        page += conventions();
        page += reproduce();
        page += cite();
        return page.append(page_end);
    }

private:
    [[nodiscard]] bool shown(std::int64_t cell) const { return !some_cells_ || shown_.contains(cell); }

    [[nodiscard]] std::string worst_note() const {
        return some_cells_
                   ? paragraph(fmt::format(
                         "{} cells are too many for a page: tables by cell show the worst {} (worst verdicts, then "
                         "largest deviations in units of the margin, then largest errors). Counts and means are "
                         "over all cells; `spiked export` has every row.",
                         progress_.cells, shown_.size()))
                   : "";
    }

    std::string heading() {
        const std::string title = study_.title.empty() ? study_.name : study_.title;
        std::vector<std::string> facts;
        if (title != study_.name) facts.push_back(study_.name);
        facts.push_back(counted(static_cast<std::size_t>(progress_.cells), "cell"));
        facts.push_back(counted(static_cast<std::size_t>(progress_.replicates), dump_ ? "block" : "replicate"));
        facts.push_back(fmt::format("{} failed", progress_.failed));
        facts.push_back("seed " + study_.seed);
        facts.push_back(study_.backend);
        facts.push_back(study_.created);
        return fmt::format("<header>\n<h1>{}</h1>\n<p class=\"facts\">{}</p>\n</header>\n", escape(title),
                           escape(fmt::format("{}", fmt::join(facts, " \u00b7 "))));
    }

    std::string band() {
        std::string markup;
        if (study_.status != "complete") {
            const bool shard = study_.status.starts_with("shard ");
            markup += fmt::format(
                "<div class=\"partial\" id=\"partial\"><p><strong>PARTIAL</strong> ({}): {} of {} cells "
                "done, {} of {}{} "
                "{}s measured. Everything below is about these; {}.</p></div>\n",
                escape(shard ? study_.status + " of the study" : "the study is " + study_.status), progress_.cells_done,
                progress_.cells, progress_.replicates, progress_.least < progress_.target ? "at most " : "",
                progress_.target, dump_ ? "block" : "replicate",
                shard ? "spiked merge joins it with the others" : "the same command resumes");
        }
        const auto counts = count_checks(checks_);
        if (checks_.empty())
            return markup +
                   "<div class=\"band\" id=\"verdict\"><p>This study has no checks: nothing here was "
                   "judged.</p></div>\n";
        const std::string verdict = counts.failed > 0 ? "fail" : counts.inconclusive > 0 ? "inconclusive" : "pass";
        markup += fmt::format(
            "<div class=\"band {}\" id=\"verdict\">\n<p class=\"word\">{} {}</p>\n<p>False-alarm rate declared for all "
            "checks together: {:g}. A pass lies inside its margin, a fail outside, both beyond the noise.</p>\n",
            verdict, verdict_mark(verdict).markup, escape(counts_text(counts) + fmt::format(" of {}", checks_.size())),
            study_.false_alarm);
        if (verdict != "pass") {
            const auto& first = checks_.front();
            markup += fmt::format(
                "<p>First to look at: {} at {}: {} against {}, {}.</p>\n",
                shown(first.cell_id) ? fmt::format("<a href=\"#check-{}\">{}</a>", first.id, escape(first.check))
                                     : escape(first.check),
                escape(first.cell), escape(with_error(first.estimate, first.standard_error)),
                escape(predicted(first.expected)), escape(first.reason.empty() ? first.verdict : first.reason));
        }
        return markup + "</div>\n";
    }

    static HtmlTable check_table(std::string_view caption) {
        return {caption,
                {"verdict", "check", "cell", "#estimate", "#theory", "#margin", "#interval", "#detectable", "#n",
                 "#control"}};
    }

    static void add_check(HtmlTable& table, const CheckRow& check) {
        std::string name = escape(check.check);
        std::string details = check.claim == check.check ? "" : escape(check.claim);
        if (check.k > 0) details += fmt::format("{}spike {}", details.empty() ? "" : ", ", check.k);
        if (check.method != "sample") details += (details.empty() ? "" : ", ") + escape(check.method);
        if (!details.empty()) name += "<small>" + details + "</small>";
        std::vector<std::string> why;
        if (!check.reason.empty()) why.push_back(escape(check.reason));
        if (check.verdict == "inconclusive" && check.needed > 0)
            why.push_back(fmt::format("about {} replicates would decide it", check.needed));
        const std::string reason =
            why.empty() ? "" : fmt::format("<small class=\"why\">{}</small>", fmt::join(why, "; "));
        const std::string control = check.control == "fail"   ? "fails"
                                    : check.control == "pass" ? "passes!"
                                                              : "inconclusive";
        table.add(
            {verdict_mark(check.verdict), Html::raw(name), Html::raw(escape(check.cell) + reason),
             with_error(check.estimate, check.standard_error), predicted(check.expected),
             Html::raw("&plusmn;" + escape(number(check.margin, 3))),
             fmt::format("{} \u2026 {}", number(check.low), number(check.high)), number(check.detectable, 2),
             std::to_string(check.n),
             Html::raw(fmt::format("{}<small>predicts {}</small>", control, escape(number(check.control_expected))))},
            fmt::format("check-{}", check.id));
    }

    std::string checks() {
        if (checks_.empty()) return "";
        std::string markup = worst_note();
        auto open = check_table("");
        auto passed = check_table("");
        std::size_t passes = 0;
        std::size_t hidden = 0;
        std::size_t hidden_bad = 0;
        for (const auto& check : checks_) {
            if (!shown(check.cell_id)) {
                ++hidden;
                if (check.verdict != "pass") ++hidden_bad;
                continue;
            }
            const bool fold = check.verdict == "pass" && ++passes > passes_unfolded;
            add_check(fold ? passed : open, check);
        }
        markup += open.html();
        if (passed.rows() > 0) markup += folded(fmt::format("{} more passed", passed.rows()), passed.html());
        if (hidden > 0)
            markup += paragraph(
                fmt::format("{} at other cells are left out, {} of them not passed: spiked export --table checks.",
                            counted(hidden, "check"), hidden_bad));
        HtmlTable claims("What each claim says, and the fault its control plants",
                         {"claim", "place", "statement", "control"});
        Statement query(
            store_,
            "SELECT id, place, statement, control FROM claim WHERE id IN (SELECT claim FROM verdict) ORDER BY id");
        while (query.step()) claims.add({code(query.text(0)), query.text(1), query.text(2), query.text(3)});
        markup += folded("The claims", claims.html());
        markup += paragraph(
            "Estimates carry their standard error in the last digits: 0.7525(22) is 0.7525 with an error of 0.0022. "
            "Interval: of the mean, at "
            "this check's share of the false-alarm rate. Detectable: the smallest deviation that would have failed "
            "with probability 0.99. "
            "Control: the same data judged against what a planted fault predicts; it must fail, and a check whose "
            "control passes counts as "
            "failed.");
        return section("checks", "Checks", markup);
    }

    std::string figures() {
        std::string markup;
        std::size_t index = 0;
        std::set<std::string> used;
        for (const auto& figure : figures_of(store_)) {
            ++index;
            markup += figure_html(figure, index);
            if (!options_.figure_folder.empty()) write_figure(figure, index);
        }
        return markup.empty() ? "" : section("figures", "Figures", markup);
    }

    static std::string figure_html(const Figure& figure, std::size_t index) {
        const std::string id = fmt::format("figure-{}", index);
        const std::string title = fmt::format("Figure {}. {}", index, figure.title);
        std::string markup = fmt::format("<figure id=\"{}\">\n<h3>{}</h3>\n", id, escape(title));
        if (!figure.svg.empty()) markup += inline_svg(figure.svg, id, title, figure.description) + "\n";
        if (!figure.images.empty()) {
            markup += "<div class=\"parts\">\n";
            for (const auto& image : figure.images)
                markup += fmt::format("<div><img alt=\"{}\" src=\"data:image/png;base64,{}\">{}</div>\n",
                                      escape("Heatmap of the " + image.label + " of " + figure.title),
                                      base64(image.png), escape(image.label));
            markup += "</div>\n";
        }
        if (!figure.scale.png.empty())
            markup += fmt::format(
                "<div class=\"scale\"><span>{}</span><img alt=\"Colour scale\" "
                "src=\"data:image/png;base64,{}\"><span>{} "
                "({})</span></div>\n",
                escape(figure.scale.low), base64(figure.scale.png), escape(figure.scale.high),
                escape(figure.scale.unit));
        if (!figure.problem.empty()) markup += paragraph("Note: " + figure.problem + ".");
        if (!figure.description.empty()) markup += "<figcaption>" + escape(figure.description) + "</figcaption>\n";
        if (!figure.rows.empty()) {
            HtmlTable table("", figure.columns);
            for (std::size_t i = 0; i < std::min(figure.rows.size(), data_rows_shown); ++i)
                table.add(std::vector<Html>(figure.rows[i].begin(), figure.rows[i].end()));
            std::string data = table.html();
            if (figure.rows.size() > data_rows_shown)
                data +=
                    paragraph(fmt::format("The first {} of {} rows; spiked report --figures FOLDER writes them all.",
                                          data_rows_shown, figure.rows.size()));
            markup += folded(fmt::format("Data of figure {}", index), data);
        }
        return markup + "</figure>\n";
    }

    void write_figure(const Figure& figure, std::size_t index) const {
        namespace fs = std::filesystem;
        std::error_code error;
        fs::create_directories(options_.figure_folder, error);
        if (error)
            throw write_error("{}: the folder for figures cannot be made ({}): check permissions",
                              options_.figure_folder, error.message());
        std::string kind;
        for (const char c : figure.kind) kind += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
        const std::string stem = (fs::path(options_.figure_folder) / fmt::format("figure-{}-{}", index, kind)).string();
        const auto write = [](const std::string& path, const std::string& text) {
            if (!text.empty()) sim::write_file(path, text);
        };
        write(stem + ".gp", figure.script);
        write(stem + ".csv", figure.csv);
        write(stem + ".svg", figure.svg);
        for (const auto& image : figure.images)
            write(stem + "-" + image.label + ".png", {image.png.begin(), image.png.end()});
    }

    std::string results() {
        std::string markup = dump_ ? paper_tables() : "";
        const std::pair<const char*, const char*> kinds[] = {
            {"sample", "What the sample shows"}, {"estimator", "Estimators"}, {"codec", "Codecs"}};
        std::string by_cell;
        for (const auto& [kind, title] : kinds)
            by_cell += dump_ && std::string_view(kind) == "codec" ? heads_table() : cell_table(kind, title);
        if (!by_cell.empty()) markup += stopping_note() + worst_note() + by_cell;
        return markup.empty() ? "" : section("results", "Results", markup);
    }

    /// Where the number of replicates depends on what they showed, the page says so.
    std::string stopping_note() {
        std::vector<std::string> rules;
        Statement rule(store_,
                       "SELECT name, relative, absolute FROM stop_rule JOIN metric USING(metric_id) ORDER BY rule_id");
        while (rule.step()) {
            std::vector<std::string> bounds;
            if (rule.real(1) > 0.0) bounds.push_back(fmt::format("{:g} of the mean", rule.real(1)));
            if (rule.real(2) > 0.0) bounds.push_back(number(rule.real(2)));
            rules.push_back(fmt::format("{} has a standard error of {}", rule.text(0), fmt::join(bounds, " and ")));
        }
        if (rules.empty()) return "";
        const auto cells = [&](const char* why) {
            Statement query(store_, "SELECT COUNT(*) FROM cell WHERE why = ?1");
            query.bind(1, why);
            (void)query.step();
            return counted(static_cast<std::size_t>(query.integer(0)), "cell");
        };
        return paragraph(
            fmt::format("The number of replicates was chosen as they came in: a cell stops when every mean of {}, or "
                        "with its last replicate. {} stopped with that accuracy, {} ran to the end without it, {} "
                        "measured nothing that the rule is about and stopped at the least number.",
                        fmt::join(rules, " and of "), cells("met"), cells("max"), cells("absent")));
    }

    /// The paper's table, one a side.
    std::string paper_tables() {
        std::map<std::tuple<std::string, std::int64_t, std::string>, std::pair<double, double>> means;
        std::map<std::pair<std::string, std::int64_t>, std::tuple<std::string, std::string, std::int64_t, std::int64_t>>
            lines;
        Statement query(
            store_,
            "SELECT side, method_id, metric, mean, mcse, v.method, v.bits, blocks, clusters FROM v_cluster v JOIN "
            "method m "
            "USING(method_id) WHERE m.kind = 'codec' AND metric NOT LIKE 'bits.%' ORDER BY side, method_id, metric_id");
        while (query.step()) {
            means[{query.text(0), query.integer(1), query.text(2)}] = {query.real(3), query.real(4)};
            auto& line = lines[{query.text(0), query.integer(1)}];
            line = {query.text(5), query.text(6), std::max(std::get<2>(line), query.integer(7)), query.integer(8)};
        }
        struct Column {
            const char* metric;
            const char* head;
            bool share = false;  // shown in percent
        };
        std::vector<Column> columns = {{"rank", "#mean rank"},
                                       {"bits_per_entry", "#bits"},
                                       {"paper_bits", "#paper bits"},
                                       {"relative_l2", "#relative L2 %", true},
                                       {"ip_bias", "#IP bias"},
                                       {"ip_std", "#IP std"},
                                       {"ip_bias_plain", "#IP bias plain"},
                                       {"ip_std_plain", "#IP std plain"}};
        const bool attention = store_.integer("SELECT count(*) FROM v_cluster WHERE metric = 'attention_output'") > 0;
        if (attention) {
            columns.push_back({"attention_logits", "#logits"});
            columns.push_back({"attention_kl", "#KL"});
            columns.push_back({"attention_top1", "#top-1 %", true});
            columns.push_back({"attention_top8", "#top-8 %", true});
            columns.push_back({"attention_output", "#attention %", true});
            columns.push_back({"attention_output_both", "#both %", true});
        }
        std::vector<std::string> heads = {"method", "#B"};
        for (const Column& column : columns) heads.emplace_back(column.head);
        std::string markup;
        std::string side;
        std::optional<HtmlTable> table;
        std::int64_t clusters = 0;
        const auto finish = [&] {
            if (table) markup += table->html();
        };
        for (const auto& [key, line] : lines) {
            if (key.first != side || !table) {
                finish();
                side = key.first;
                table.emplace(fmt::format("{}s, {} blocks", side, std::get<2>(line)), heads);
            }
            clusters = std::get<3>(line);
            std::vector<Html> cells = {std::get<0>(line), std::get<1>(line)};
            for (const Column& column : columns) {
                const auto found = means.find({side, key.second, column.metric});
                const double scale = column.share ? 100.0 : 1.0;
                cells.emplace_back(found == means.end()
                                       ? std::string("-")
                                       : with_error(scale * found->second.first, scale * found->second.second, 5));
            }
            table->add(cells);
        }
        finish();
        if (!markup.empty())
            markup += paragraph(fmt::format(
                "Means over blocks; standard errors clustered ({} clusters). bits: stored bits "
                "an entry, counted from the bytes. paper bits: b + "
                "r (n + d) b_s / (n d), norms left out. IP: error of the cosine of different "
                "rows, decoded rows renormalised as in the paper; "
                "plain: not renormalised.{}",
                clusters,
                attention ? " Attention over the whole sequence: root mean square error of a "
                            "logit, divergence of the weights in nats, largest weight and 8 "
                            "largest that stay; relative error of the output with this side coded, and with "
                            "both."
                          : ""));
        return markup;
    }

    /// Relative error of every codec, head by head.
    std::string heads_table() {
        std::vector<std::string> columns = {"cell", "#n", "#d"};
        std::map<std::int64_t, std::size_t> column;
        Statement methods(store_,
                          "SELECT method_id, name FROM method WHERE kind = 'codec' AND method_id IN (SELECT method_id "
                          "FROM v_summary WHERE "
                          "metric = 'relative_l2') ORDER BY method_id");
        while (methods.step() && column.size() < 16) {
            column[methods.integer(0)] = columns.size();
            columns.push_back("#" + methods.text(1));
        }
        if (column.empty()) return "";
        HtmlTable table("relative L2 error in percent, cell by cell", columns);
        Statement query(store_,
                        "SELECT s.cell_id, c.label, c.n, c.d, s.method_id, s.mean, s.mcse FROM v_summary s JOIN cell c "
                        "USING(cell_id) WHERE "
                        "s.metric = 'relative_l2' ORDER BY s.cell_id, s.method_id");
        std::vector<Html> cells;
        std::int64_t current = std::numeric_limits<std::int64_t>::min();
        const auto finish = [&] {
            if (!cells.empty()) table.add(cells);
        };
        while (query.step()) {
            if (!shown(query.integer(0)) || !column.contains(query.integer(4))) continue;
            if (query.integer(0) != current) {
                finish();
                current = query.integer(0);
                cells.assign(columns.size(), Html("-"));
                cells[0] = query.text(1);
                cells[1] = query.text(2);
                cells[2] = query.text(3);
            }
            cells[column.at(query.integer(4))] = with_error(100.0 * query.real(5), 100.0 * query.real(6));
        }
        finish();
        return folded(fmt::format("{} by layer and head", counted(table.rows(), "cell")), table.html());
    }

    /// Cells down, metrics across; theory below the estimate it is about.
    std::string cell_table(const std::string& kind, std::string_view title) {
        std::vector<std::string> columns = {"cell"};
        if (kind != "sample") columns.emplace_back("method");
        columns.emplace_back("#n");
        const std::size_t fixed = columns.size();
        std::map<std::pair<std::string, std::int64_t>, std::size_t> column;
        Statement names(store_,
                        "SELECT s.metric, s.k FROM v_summary s JOIN method m USING(method_id) WHERE m.kind = ?1 AND "
                        "s.metric NOT LIKE 'bits.%' "
                        "GROUP BY s.metric_id, s.k ORDER BY s.metric_id, s.k");
        names.bind(1, kind);
        while (names.step() && column.size() < 24) {
            column[{names.text(0), names.integer(1)}] = columns.size();
            columns.push_back("#" + names.text(0) + (names.integer(1) > 0 ? fmt::format(" {}", names.integer(1)) : ""));
        }
        if (column.empty()) return "";
        HtmlTable table("", columns);
        Statement query(store_,
                        "SELECT s.cell_id, s.method_id, s.cell, s.method, s.metric, s.k, s.n, s.failed, s.mean, "
                        "s.mcse, t.value FROM v_summary s "
                        "JOIN method m USING(method_id) LEFT JOIN theory t ON t.cell_id = s.cell_id AND t.quantity = "
                        "s.metric AND t.k = s.k AND "
                        "m.kind = 'sample' WHERE m.kind = ?1 ORDER BY s.cell_id, s.method_id, s.metric_id, s.k");
        query.bind(1, kind);
        std::vector<Html> cells;
        std::pair<std::int64_t, std::int64_t> current{-1, -1};
        std::int64_t n = 0;
        std::int64_t failed = 0;
        const auto finish = [&] {
            if (cells.empty()) return;
            cells[fixed - 1] =
                Html::raw(failed > 0 ? fmt::format("{}<small>{} missing</small>", n, failed) : std::to_string(n));
            table.add(cells);
            cells.clear();
        };
        while (query.step()) {
            const auto found = column.find({query.text(4), query.integer(5)});
            if (!shown(query.integer(0)) || found == column.end()) continue;
            if (const std::pair key{query.integer(0), query.integer(1)}; key != current) {
                finish();
                current = key;
                n = failed = 0;
                cells.assign(columns.size(), Html("-"));
                cells[0] = query.text(2);
                if (kind != "sample") cells[1] = query.text(3);
            }
            n = std::max(n, query.integer(6));
            failed = std::max(failed, query.integer(7));
            std::string text = escape(with_error(query.real(8), query.real(9)));
            if (!query.is_null(10)) text += fmt::format("<small>theory {}</small>", escape(predicted(query.real(10))));
            cells[found->second] = Html::raw(text);
        }
        finish();
        if (table.rows() == 0) return "";
        return table.rows() > passes_unfolded
                   ? folded(fmt::format("{}: {}", title, counted(table.rows(), "row")), table.html())
                   : "<h3>" + escape(title) + "</h3>\n" + table.html();
    }

    std::string ledger() {
        std::map<std::string, std::size_t> column;
        std::vector<std::string> columns = {"method"};
        if (dump_) columns.emplace_back("side");
        const std::size_t fixed = columns.size();
        Statement items(store_,
                        "SELECT mt.name FROM moment m JOIN metric mt USING(metric_id) WHERE mt.name LIKE 'bits.%' AND "
                        "m.n > 0 GROUP BY metric_id "
                        "HAVING MAX(m.mean) > 0 ORDER BY metric_id");
        while (items.step()) {
            column[items.text(0)] = columns.size();
            columns.push_back("#" + items.text(0).substr(5));
        }
        if (column.empty()) return "";
        columns.emplace_back("#total");
        HtmlTable table("Stored bits an entry, item by item, mean over blocks", columns);
        Statement query(store_,
                        "SELECT me.method_id, me.name, coalesce(side.txt, ''), mt.name, SUM(m.n * m.mean) / SUM(m.n) "
                        "FROM moment m JOIN metric mt "
                        "USING(metric_id) JOIN method me USING(method_id) LEFT JOIN factor side ON side.cell_id = "
                        "m.cell_id AND side.name = 'side' "
                        "WHERE mt.name LIKE 'bits.%' AND m.n > 0 GROUP BY me.method_id, 3, mt.metric_id ORDER BY "
                        "me.method_id, 3, mt.metric_id");
        std::pair<std::int64_t, std::string> current{-1, ""};
        std::vector<Html> cells;
        double total = 0.0;
        const auto finish = [&] {
            if (cells.empty()) return;
            cells.back() = fmt::format("{:.4f}", total);
            table.add(cells);
        };
        while (query.step()) {
            if (const std::pair key{query.integer(0), query.text(2)}; cells.empty() || key != current) {
                finish();
                current = key;
                total = 0.0;
                cells.assign(columns.size(), Html("0"));
                cells[0] = query.text(1);
                if (fixed > 1) cells[1] = query.text(2);
            }
            total += query.real(4);
            if (const auto found = column.find(query.text(3)); found != column.end() && query.real(4) > 0.0)
                cells[found->second] = fmt::format("{:.4f}", query.real(4));
        }
        finish();
        return section(
            "ledger", "Bits ledger",
            table.html() + paragraph("Counted from the bytes a decoder reads; items that no method stores are left "
                                     "out."));
    }

    std::string failures() {
        const auto total = store_.integer("SELECT COUNT(*) FROM failure");
        std::string markup;
        if (total > 0) {
            HtmlTable table("", {"cell", "#replicate", "method", "stage", "why", "replay"});
            Statement query(
                store_,
                "SELECT c.label, f.rep, coalesce(m.name, ''), f.stage, f.code, f.message, f.replay FROM failure f LEFT "
                "JOIN cell c "
                "USING(cell_id) LEFT JOIN method m USING(method_id) ORDER BY f.cell_id, f.rep, f.rowid LIMIT ?1");
            query.bind(1, failures_shown);
            while (query.step())
                table.add({query.text(0), query.text(1), query.text(2), query.text(3),
                           query.text(4) + ": " + query.text(5), code(query.text(6))});
            markup = paragraph(
                         fmt::format("{}; a failed replicate is stored as missing, never as 0, and n counts only "
                                     "those that did not fail. In a command STORE stands for the store of this page.{}",
                                     counted(static_cast<std::size_t>(total), "failed replicate"),
                                     total > static_cast<std::int64_t>(failures_shown)
                                         ? fmt::format(" The first {} are shown.", failures_shown)
                                         : "")) +
                     table.html();
        }
        HtmlTable events("Events", {"time", "level", "code", "message"});
        Statement query(store_, "SELECT t_utc, level, code, message FROM event ORDER BY rowid LIMIT 100");
        while (query.step()) events.add({query.text(0), query.text(1), query.text(2), query.text(3)});
        if (events.rows() > 0) markup += folded(counted(events.rows(), "event"), events.html());
        return section("failures", "Failures", markup.empty() ? paragraph("No replicate failed.") : markup);
    }

    std::string conventions() {
        HtmlTable fixed("", {"quantity", "convention"});
        fixed.add({"block", "n rows (tokens) x d columns (features)"});
        fixed.add({"noise", "Z = A^{1/2} X B^{1/2}, entries of X of variance 1/d"});
        fixed.add({"edges and outliers", "eigenvalues of the block times its transpose: squared singular values"});
        fixed.add({"strengths", "singular values; in units of the detection threshold where a factor says so"});
        fixed.add({"overlap", "squared inner product of a true and an observed singular vector"});
        fixed.add({"bits", "every stored bit: indices, norms, scales, factors, codebooks, signs, headers"});
        fixed.add({"missing", "a failed replicate is stored as missing with its reason; never 0, never dropped"});
        HtmlTable metrics("Metrics of this store", {"metric", "unit", "definition"});
        Statement query(store_,
                        "SELECT name, unit, definition FROM metric WHERE metric_id IN (SELECT metric_id FROM moment) "
                        "ORDER BY metric_id");
        while (query.step()) metrics.add({code(query.text(0)), query.text(1), query.text(2)});
        return section("conventions", "Conventions",
                       fixed.html() + (metrics.rows() > 0 ? folded("Definitions of the metrics", metrics.html()) : ""));
    }

    static void flatten(const Json& json, const std::string& prefix, std::string& terms) {
        if (json.members() != nullptr) {
            for (const auto& [name, value] : *json.members())
                flatten(value, prefix.empty() ? name : prefix + "." + name, terms);
            return;
        }
        const std::string text = json.string() != nullptr ? *json.string() : json.text();
        terms += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape(prefix), escape(text));
    }

    /// Build of the first session; later ones are named in the table of sessions when they differ.
    [[nodiscard]] Json provenance() const {
        Statement query(store_, "SELECT provenance FROM session ORDER BY session_id LIMIT 1");
        if (!query.step()) return {};
        try {
            return Json::parse(query.text(0), "provenance");
        } catch (const Error&) {
            return query.text(0);
        }
    }

    std::string reproduce() {
        Statement first(store_, "SELECT argv FROM session ORDER BY session_id LIMIT 1");
        const std::string command = first.step() ? first.text(0) : "";
        std::string terms;
        const auto term = [&](std::string_view name, const Html& value) {
            terms += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape(name), value.markup);
        };
        term("seed", Html::raw(fmt::format("{} ({})", code(study_.seed).markup, escape(study_.seed_source))));
        term("science hash", code(study_.science_hash));
        term("backend", study_.backend);
        term("created", study_.created);
        term("status", study_.status);
        std::string markup = preformatted(command) + "<dl>\n" + terms + "</dl>\n";
        markup += folded("Study as its author wrote it", preformatted(study_.config_source));
        markup += folded("Study as it was run, defaults included", preformatted(study_.config_resolved));

        std::string build;
        flatten(provenance(), "", build);
        if (!build.empty()) markup += folded("Build", "<dl>\n" + build + "</dl>\n");

        const auto input_count = store_.integer("SELECT COUNT(*) FROM input");
        HtmlTable inputs(fmt::format("Inputs{}", input_count > static_cast<std::int64_t>(inputs_shown)
                                                     ? fmt::format(", the first {} of {}", inputs_shown, input_count)
                                                     : ""),
                         {"file", "#bytes", "sha256", "format", "layout", "model"});
        Statement input(store_,
                        "SELECT path, bytes, sha256, format, layout, model FROM input ORDER BY input_id LIMIT ?1");
        input.bind(1, inputs_shown);
        while (input.step())
            inputs.add(
                {input.text(0), input.text(1), code(input.text(2)), input.text(3), input.text(4), input.text(5)});
        if (inputs.rows() > 0) markup += inputs.html();

        HtmlTable sessions(
            fmt::format("Sessions{}", progress_.sessions > static_cast<std::int64_t>(sessions_shown)
                                          ? fmt::format(", the last {} of {}", sessions_shown, progress_.sessions)
                                          : ""),
            {"#session", "started", "ended", "exit", "why it stopped", "host", "#threads", "device", "build"});
        Statement session(store_,
                          "SELECT session_id, started_utc, ended_utc, exit_code, stop_reason, host, threads, device, "
                          "provenance = (SELECT "
                          "provenance FROM session ORDER BY session_id LIMIT 1) FROM (SELECT * FROM session ORDER BY "
                          "session_id DESC LIMIT ?1) "
                          "ORDER BY session_id");
        session.bind(1, sessions_shown);
        while (session.step())
            sessions.add({session.text(0), session.text(1), session.is_null(2) ? "no end recorded" : session.text(2),
                          session.text(3), session.text(4), session.text(5), session.text(6), session.text(7),
                          session.integer(8) != 0 ? "as above" : "another build"});
        if (sessions.rows() > 0) markup += sessions.html();
        return section("reproduce", "Reproduce", markup);
    }

    std::string cite() {
        const Json build = provenance();
        const std::string version = text_of(build, "version");
        const std::string commit = text_of(build, "commit");
        const std::string who =
            "Spiked" + (version.empty() ? "" : " " + version) + (commit.empty() ? "" : " (" + commit + ")");
        return section("cite", "How to cite",
                       preformatted(fmt::format("{}: study \"{}\", science {}, seed {}, {}.", who, study_.name,
                                                study_.science_hash, study_.seed, study_.created)));
    }

    Database& store_;
    const ReportOptions& options_;
    Study study_;
    Progress progress_;
    std::vector<CheckRow> checks_;
    bool dump_;
    bool some_cells_ = false;
    std::set<std::int64_t> shown_;
};

}  // namespace

std::string html_report(const std::string& store_path, const ReportOptions& options) {
    Database store = validation::open_store(store_path);
    store.execute("BEGIN");  // one state of the store, even while a study still writes
    return Page(store, options).html();
}

void write_html_report(const std::string& store_path, const std::string& output_path, const ReportOptions& options) {
    const std::string page = html_report(store_path, options);
    sim::write_file(output_path, page);
}

}  // namespace spiked::reports
