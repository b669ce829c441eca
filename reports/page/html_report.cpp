#include "reports/page/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/page/check_sections.hpp"
#include "reports/page/claim_page.hpp"
#include "reports/page/figure_section.hpp"
#include "reports/page/html.hpp"
#include "reports/page/ledger_section.hpp"
#include "reports/page/origin_sections.hpp"
#include "reports/page/printed_values.hpp"
#include "reports/page/result_sections.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/engine/judge.hpp"
#include "validation/store/experiment.hpp"
#include "validation/store/open_store.hpp"
#include "validation/verdicts/claim_study.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

/// Identifies pages of html_report.
constexpr const char* generator = "spiked report";
constexpr std::size_t all_cells_up_to = 200;
constexpr std::size_t worst_cells_shown = 50;
constexpr std::size_t failures_shown = 50;
constexpr std::size_t events_shown = 100;
/// Size of the content of a page; the whole page stays below 5 MB for studies of any size.
constexpr std::size_t page_bytes = 4'700'000;

struct Progress {
    std::int64_t cells, cells_done, replicates, least, target, failed;
};

Progress read_progress(Database& store) {
    return {store.integer("SELECT COUNT(*) FROM cell"),
            store.integer("SELECT COUNT(*) FROM cell WHERE state = 'done'"),
            store.integer("SELECT coalesce(SUM(reps), 0) FROM batch"),
            store.integer("SELECT coalesce(SUM(reps_least), 0) FROM cell"),
            store.integer("SELECT coalesce(SUM(reps_target), 0) FROM cell"),
            store.integer("SELECT coalesce(SUM(failed), 0) FROM batch")};
}

/// A section for one store; left out when it has no markup.
struct Section {
    const char* id;
    const char* title;
    std::string markup;
};

/// The part of a page for one store, or the whole page for a single store, with a limited size: first tables show fewer
/// cells, then pictures and finally whole sections are left out, each with a note on the page.
class StorePart {
public:
    StorePart(Database& store, const ReportOptions& options, PagePlace place)
        : store_(store),
          options_(options),
          place_(std::move(place)),
          study_(read_study(store)),
          progress_(read_progress(store)),
          checks_(read_checks(store)),
          questions_(static_cast<std::size_t>(store.integer("SELECT count(*) FROM question"))),
          dump_(validation::of_dumps_or_models(study_.kind)),
          replicate_(replicate_name(store)) {}

    [[nodiscard]] const StudyRow& study() const { return study_; }
    [[nodiscard]] const Progress& progress() const { return progress_; }
    [[nodiscard]] validation::VerdictCounts counts() const { return count_checks(checks_); }
    /// The worst check; null where all passed.
    [[nodiscard]] const CheckRow* worst() const {
        return checks_.empty() || checks_.front().verdict == validation::Verdict::pass ? nullptr : &checks_.front();
    }
    /// A paragraph on the worst check; empty where all checks passed. Call it after html().
    [[nodiscard]] std::string worst_check_markup(const std::string& where) const {
        const CheckRow* first = worst();
        if (first == nullptr) return "";
        return fmt::format(
            "<p>Worst check: {}{} at {}: {} against {}, {}.</p>\n", escape(where),
            shown(first->cell_id) && !checks_left_out_
                ? fmt::format("<a href=\"#{}check-{}\">{}</a>", place_.prefix, first->id, escape(first->check))
                : escape(first->check),
            escape(first->cell), escape(with_error(first->estimate, first->standard_error)), escape(stated(*first)),
            escape(first->reason.empty() ? std::string(name_of(first->verdict)) : first->reason));
    }
    [[nodiscard]] std::string title() const { return study_.title.empty() ? study_.name : study_.title; }

    std::string html(std::size_t most_bytes) {
        most_bytes_ = most_bytes;
        std::string result_tables = results();  // first, because it determines the cells shown
        std::vector<Section> sections = {
            {"checks", "Checks", checks_markup(store_, checks_, place_, shown_, most_bytes_)},
            {"figures", "Figures", figures_markup(store_, place_, options_, metric_of_map(), most_bytes_)},
            {"results", "Results", std::move(result_tables)},
            {"printed", "Comparison with printed values",
             options_.against.empty() ? "" : printed_markup(store_, options_.against)},
            {"ledger", "Stored bits, item by item", ledger_markup(store_, place_, most_bytes_ / 10)},
            {"failures", "Failures", failures()},
            {"conventions", "Words and conventions", conventions()},
            {"reproduce", "Reproduce", reproduce_markup(store_, study_)},
            {"cite", "How to cite", cite_markup(store_, study_)},
        };
        // The answer of a dump study is its table, before pictures of single blocks.
        if (dump_) std::swap(sections[1], sections[2]);
        leave_out_the_largest(sections);
        std::string page =
            heading() + band() + fmt::format("<nav aria-label=\"{}\">\n", escape("Sections of " + title()));
        for (const auto& one : sections)
            if (!one.markup.empty())
                page += fmt::format("<a href=\"#{}{}\">{}</a>\n", place_.prefix, one.id, one.title);
        page += "</nav>\n";
        for (const auto& one : sections)
            if (!one.markup.empty()) page += section(place_, one.id, one.title, one.markup);
        return page;
    }

private:
    void leave_out_the_largest(std::vector<Section>& sections) {
        constexpr std::size_t around = 4000;  // bytes of headings, band and links
        const auto by_size = [](const Section& a, const Section& b) { return a.markup.size() < b.markup.size(); };
        for (;;) {
            std::size_t total = around;
            for (const auto& one : sections) total += one.markup.size();
            auto& largest = *std::max_element(sections.begin(), sections.end(), by_size);
            const std::string instead = paragraph(fmt::format(
                "Left out to keep the page small ({} kB). {}", largest.markup.size() / 1000,
                place_.prefix.empty() ? "The store has it: spiked show and spiked export, or spiked report --figures."
                                      : "A page of this store alone shows more: spiked report STORE."));
            if (total <= most_bytes_ || largest.markup.size() <= instead.size()) return;
            if (std::string_view(largest.id) == "checks") checks_left_out_ = true;
            largest.markup = instead;
        }
    }

    /// Tables of all cells, or of as many of the worst cells as fit in a quarter of the bytes.
    std::string results() {
        const auto all = static_cast<std::size_t>(progress_.cells);
        const std::size_t room = most_bytes_ / 4;
        std::size_t count = all <= all_cells_up_to ? all : worst_cells_shown;
        for (;;) {
            if (count < all) show_worst(count);
            std::string markup = results_markup(store_, place_, shown_, count > 1 ? page_bytes : room / 3);
            if (markup.size() <= room || count <= 1) return markup;
            count = std::clamp<std::size_t>(count * room / markup.size(), 1, count - 1);
        }
    }

    void show_worst(std::size_t count) {
        const auto ids = worst_cells(store_, checks_, count);
        shown_.ids.emplace(ids.begin(), ids.end());
        const auto methods = store_.integer("SELECT COUNT(*) FROM method WHERE kind <> 'sample'");
        shown_.note = paragraph(fmt::format(
            "{} cells{} are too many for a page: tables by cell show the worst {} (worst verdicts, then largest "
            "deviations in units of the margin, then largest errors). Counts, means and the map are over all cells; "
            "`spiked export STORE --table summary` has every row.",
            progress_.cells,
            progress_.cells > static_cast<std::int64_t>(all_cells_up_to) ? "" : fmt::format(" of {} methods", methods),
            ids.size()));
    }

    [[nodiscard]] bool shown(std::int64_t cell) const { return shown_.contains(cell); }

    std::string heading() {
        std::vector<std::string> facts;
        if (title() != study_.name) facts.push_back(study_.name);
        facts.push_back(counted(static_cast<std::size_t>(progress_.cells), "cell"));
        facts.push_back(counted(static_cast<std::size_t>(progress_.replicates), replicate_));
        facts.push_back(fmt::format("{} failed", progress_.failed));
        facts.push_back(study_.backend);
        facts.push_back(study_.created);
        return fmt::format("<header>\n<h{0}>{1}</h{0}>\n<p class=\"facts\">{2}</p>\n</header>\n", place_.level - 1,
                           escape(title()), escape(fmt::format("{}", fmt::join(facts, " \u00b7 "))));
    }

    std::string band() {
        std::string markup;
        if (study_.status != "complete") {
            const bool shard = study_.status.starts_with("shard ");
            markup += fmt::format(
                "<div class=\"partial\" id=\"{}partial\"><p><strong>PARTIAL</strong> ({}): {} of {} cells done, {} of "
                "{}{} {}s measured. Everything below covers only these; {}.</p></div>\n",
                place_.prefix,
                escape(shard                        ? study_.status + " of the study"
                       : study_.status == "running" ? "the study is running, or was killed"
                                                    : "the study is " + study_.status),
                progress_.cells_done, progress_.cells, progress_.replicates,
                progress_.least < progress_.target ? "at most " : "", progress_.target, replicate_,
                shard                       ? "spiked merge joins it with the others"
                : study_.status == "failed" ? "more replicates of a cell failed than run.failure_budget allows, so the "
                                              "same command would stop again: correct the study, or allow more"
                                            : "the same command resumes");
        }
        const auto counts = count_checks(checks_);
        if (checks_.empty())
            return markup + fmt::format("<div class=\"band\" id=\"{}verdict\"><p>{}</p></div>\n", place_.prefix,
                                        questions_ == 0 ? "Measurements without a verdict: this study has no checks."
                                                        : counted(questions_, "check") + ", none judged yet.");
        const std::string verdict = verdict_of(counts);
        markup += fmt::format(
            "<div class=\"band {}\" id=\"{}verdict\">\n<p class=\"word\">{} {}</p>\n<p>A check passes when the "
            "confidence interval of its mean lies inside the margin around theory, and fails when it lies outside. "
            "False-alarm rate of all checks together: {:g} (nominal).</p>\n",
            verdict, place_.prefix, verdict_mark(verdict).markup,
            escape(counts_text(counts) + fmt::format(" of {}", checks_.size())), study_.false_alarm);
        return markup + worst_check_markup("") + "</div>\n";
    }

    /// The `y` of the map of a large study, whose tables show only the worst cells: empty (a check) where there are
    /// checks, otherwise the error by which worst_cells orders cells. No value: no map.
    [[nodiscard]] std::optional<std::string> metric_of_map() const {
        if (progress_.cells <= static_cast<std::int64_t>(all_cells_up_to) || dump_) return std::nullopt;
        if (!checks_.empty()) return "";
        Statement query(store_,
                        "SELECT name FROM metric WHERE name IN ('relative_error', 'relative_l2') AND metric_id IN "
                        "(SELECT metric_id FROM moment) ORDER BY metric_id LIMIT 1");
        return query.step() ? query.text(0) : "";
    }

    std::string failures() {
        const auto total = store_.integer("SELECT COUNT(*) FROM failure");
        std::string markup;
        if (total > 0) {
            HtmlTable table("", {"cell", "#replicate", "method", "stage", "why", "replay"});
            table.limit(most_bytes_ / 20, "spiked export STORE --table failures");
            Statement query(
                store_,
                "SELECT c.label, f.rep, coalesce(m.name, ''), f.stage, f.code, f.message, f.cell_id FROM failure f "
                "LEFT JOIN cell c USING(cell_id) LEFT JOIN method m USING(method_id) ORDER BY f.cell_id, f.rep, "
                "f.rowid LIMIT ?1");
            query.bind(1, failures_shown);
            while (query.step())
                table.add(
                    {query.text(0), query.text(1), query.text(2), query.text(3), query.text(4) + ": " + query.text(5),
                     code(fmt::format("spiked replay STORE --cell {} --rep {}", query.integer(6), query.integer(1)))});
            markup = paragraph(fmt::format(
                         "{}; a failed replicate is stored as missing, never as 0, and replicates count only those "
                         "that did not fail. In a command STORE stands for the store of this page.{}",
                         counted(static_cast<std::size_t>(total), "failed replicate"),
                         total > static_cast<std::int64_t>(failures_shown)
                             ? fmt::format(" The first {} are shown.", failures_shown)
                             : "")) +
                     table.html();
        }
        const auto all = static_cast<std::size_t>(store_.integer("SELECT COUNT(*) FROM event"));
        HtmlTable events(all > events_shown ? fmt::format("The first {} of {} events; the others are in table event of "
                                                          "the store",
                                                          events_shown, all)
                                            : "Events",
                         {"time", "level", "code", "message"});
        Statement query(store_, "SELECT t_utc, level, code, message FROM event ORDER BY rowid LIMIT ?1");
        query.bind(1, events_shown);
        while (query.step()) events.add({query.text(0), query.text(1), query.text(2), query.text(3)});
        if (all > 0) markup += folded(counted(all, "event"), events.html());
        return markup.empty() ? paragraph("No replicate failed.") : markup;
    }

    std::string conventions() {
        HtmlTable fixed("", {"word", "meaning"});
        fixed.add({"cell", "one combination of the settings that a study varies; of a dump, one head of one layer"});
        fixed.add({"replicate", "one repetition of a cell with random numbers of its own; of a dump, one block"});
        fixed.add({"0.7525(22)", "a mean of 0.7525 with a standard error of 0.0022"});
        fixed.add({"block", "n rows (tokens) x d columns (features)"});
        fixed.add({"noise", "Z = A^{1/2} X B^{1/2}, entries of X of variance 1/d"});
        fixed.add({"edges and outliers", "eigenvalues of the block times its transpose: squared singular values"});
        fixed.add({"strengths", "singular values; in units of the detection threshold where a factor says so"});
        fixed.add({"overlap", "squared inner product of a true and an observed singular vector"});
        fixed.add({"bits", "every stored bit: indices, norms, scales, factors, codebooks, signs, headers"});
        fixed.add({"missing", "a failed replicate is stored as missing with its reason; never 0, never dropped"});
        HtmlTable metrics("Metrics of this store", {"metric", "in tables", "unit", "definition"});
        Statement query(store_,
                        "SELECT name, unit, definition FROM metric WHERE metric_id IN (SELECT metric_id FROM moment) "
                        "ORDER BY metric_id");
        while (query.step())
            metrics.add({code(query.text(0)), column_name_of(query.text(0)), query.text(1), query.text(2)});
        return fixed.html() + (metrics.rows() > 0 ? folded("Definitions of the metrics", metrics.html()) : "");
    }

    Database& store_;
    const ReportOptions& options_;
    PagePlace place_;
    StudyRow study_;
    Progress progress_;
    std::vector<CheckRow> checks_;
    std::size_t questions_;
    bool dump_;
    std::string replicate_;
    ShownCells shown_;
    std::size_t most_bytes_ = page_bytes;
    bool checks_left_out_ = false;
};

void reject_repeated(const std::vector<std::string>& paths) {
    std::map<std::string, std::string> given;
    for (const auto& path : paths) {
        const auto [first, fresh] = given.emplace(std::filesystem::weakly_canonical(path).string(), path);
        if (!fresh)
            throw usage_error("{}: this store is given twice (first as {}): name each store once", path, first->second);
    }
}

}  // namespace

std::string html_report(const std::vector<std::string>& store_paths, const ReportOptions& options) {
    for (const auto& format : options.figure_formats) (void)picture_format("." + format);
    if (!options.against.empty() && store_paths.size() > 1)
        throw usage_error("--against {}: {} stores (printed values are compared with one): name one store",
                          options.against, store_paths.size());
    reject_repeated(store_paths);
    std::vector<Database> stores;
    for (const auto& path : store_paths) {
        stores.push_back(validation::open_store(path));
        stores.back().execute("BEGIN");  // a consistent state of the store, even while a study writes to it
        if (options.false_alarm) validation::judge_again(stores.back(), *options.false_alarm);
    }
    if (stores.size() == 1 && validation::holds_claims(stores.front())) {
        const auto& claims = options.claims.empty() ? validation::claims().rows() : options.claims;
        const validation::Validation found = validation::stored_verdicts(stores.front(), claims);
        return claims_html(found, claims_origin(stores.front(), found), generator);
    }
    if (stores.size() == 1) {
        StorePart part(stores.front(), options, {});
        return (page_head(part.study().name, generator) + part.html(page_bytes)).append(page_end);
    }
    std::string parts;
    validation::VerdictCounts counts;
    bool partial = false;
    CheckRow worst;
    std::string worst_markup;
    HtmlTable table("", {"study", "verdict", "#passed", "#failed", "#inconclusive", "#cells", "state"});
    for (std::size_t i = 0; i < stores.size(); ++i) {
        const std::string prefix = fmt::format("study-{}-", i + 1);
        StorePart part(stores[i], options, {prefix, 3});
        const auto one = part.counts();
        counts.passed += one.passed;
        counts.failed += one.failed;
        counts.inconclusive += one.inconclusive;
        partial = partial || part.study().status != "complete";
        table.add({Html::raw(fmt::format("<a href=\"#{}top\">{}</a>", prefix, escape(part.title()))),
                   verdict_mark(verdict_of(one)), std::to_string(one.passed), std::to_string(one.failed),
                   std::to_string(one.inconclusive), std::to_string(part.progress().cells), part.study().status});
        // Bytes that small studies do not use go to the studies after them.
        const std::size_t room = (page_bytes - std::min(page_bytes, parts.size())) / (stores.size() - i);
        parts += fmt::format("<article id=\"{}top\">\n{}</article>\n", prefix, part.html(room));
        if (const CheckRow* own = part.worst(); own != nullptr && (worst_markup.empty() || farther_off(*own, worst))) {
            worst = *own;
            worst_markup = part.worst_check_markup(part.title() + ", ");
        }
    }
    const std::string title = fmt::format("{} studies", stores.size());
    const std::string verdict = verdict_of(counts);
    std::string page = page_head(title, generator) + "<header>\n<h1>" + title + "</h1>\n</header>\n";
    if (partial)
        page +=
            "<div class=\"partial\" id=\"partial\"><p><strong>PARTIAL</strong>: some of them are not complete, as the "
            "table shows.</p></div>\n";
    page += fmt::format("<div class=\"band {}\" id=\"verdict\">\n<p class=\"word\">{} {}</p>\n{}</div>\n", verdict,
                        verdict_mark(verdict).markup, escape(counts_text(counts)), worst_markup);
    return (page + table.html() + parts).append(page_end);
}

bool may_replace(const std::string& path) {
    std::error_code absent;
    const auto status = std::filesystem::symlink_status(path, absent);  // does not follow links
    if (status.type() == std::filesystem::file_type::not_found) return true;
    if (status.type() != std::filesystem::file_type::regular) return false;
    std::ifstream file(path, std::ios::binary);
    std::string head(4096, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    return head.find(fmt::format("<meta name=\"generator\" content=\"{}\">", generator)) != std::string::npos;
}

void write_html_report(const std::vector<std::string>& store_paths, const std::string& output_path,
                       const ReportOptions& options) {
    const std::string page = html_report(store_paths, options);
    write_file(output_path, page);
}

}  // namespace spiked::reports
