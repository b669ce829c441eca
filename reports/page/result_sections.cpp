#include "reports/page/result_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "reports/figures/figure_parts.hpp"
#include "reports/tables/method_table.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t rows_unfolded = 20;
constexpr std::size_t most_columns = 24;  // of a table
constexpr const char* all_means = "spiked export STORE --table summary";

constexpr const char* meaning_of_bold =
    "Bold: better than the others of its kind and bit width B by more than two standard errors of the paired "
    "difference (for few parts, by the quantile of Student's law at the same level); methods of one B differ in stored "
    "bits.";

/// The note below a table that lacks room for all its columns.
std::string columns_left_out(const std::vector<std::string>& names) {
    if (names.empty()) return "";
    constexpr std::size_t most_named = 8;
    const auto named = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most_named));
    return paragraph(fmt::format(
        "{} left out to keep the table readable: {}{}. {} has all.",
        names.size() == 1 ? "1 column is" : fmt::format("{} columns are", names.size()),
        fmt::join(names.begin(), named, ", "),
        names.size() > most_named ? fmt::format(" and {} more", names.size() - most_named) : "", all_means));
}

/// A table with its title; long tables open on a click.
std::string titled(const PagePlace& place, const std::string& title, const HtmlTable& table,
                   const std::vector<std::string>& left_out) {
    if (table.rows() == 0) return "";
    const std::string markup = table.html() + columns_left_out(left_out);
    return table.rows() > rows_unfolded ? folded(fmt::format("{}: {}", title, counted(table.rows(), "row")), markup)
                                        : subheading(place, title) + markup;
}

std::string name_of(const std::string& metric, std::int64_t k) {
    const std::string name = column_name_of(metric);
    return k > 0 ? fmt::format("{} {}", name, k) : name;
}

/// A method and its bit width in one cell, which stays in sight while a wide table scrolls sideways.
std::string name_of(const MethodRow& row) { return row.bits.empty() ? row.method : row.method + " B=" + row.bits; }

/// A note where the number of replicates depends on their results.
std::string stopping_note(Database& store) {
    std::vector<std::string> rules;
    Statement rule(store,
                   "SELECT name, relative, absolute FROM stop_rule JOIN metric USING(metric_id) ORDER BY rule_id");
    while (rule.step()) {
        std::vector<std::string> bounds;
        if (rule.real(1) > 0.0) bounds.push_back(fmt::format("{:g} of the mean", rule.real(1)));
        if (rule.real(2) > 0.0) bounds.push_back(number(rule.real(2)));
        rules.push_back(fmt::format("{} has a standard error of {}", rule.text(0), fmt::join(bounds, " and ")));
    }
    if (rules.empty()) return "";
    const auto cells = [&](const char* why) {
        Statement query(store, "SELECT COUNT(*) FROM cell WHERE why = ?1");
        query.bind(1, why);
        (void)query.step();
        return counted(static_cast<std::size_t>(query.integer(0)), "cell");
    };
    return paragraph(
        fmt::format("The number of replicates was chosen during the run: a cell stops when every mean of {}, or "
                    "with its last replicate. {} stopped with that accuracy, {} ran to the end without it, {} "
                    "measured none of these metrics and stopped at the smallest number.",
                    fmt::join(rules, " and of "), cells("met"), cells("max"), cells("absent")));
}

constexpr const char* meaning_of_partial =
    "10 of 160: the value is defined in 10 of the 160 measured replicates, and the mean is over these. The others "
    "did not fail: a component that a method does not find has no strength, and errors relative to zero are not "
    "defined. Failed replicates are counted separately, under Failures. -: the method has no such quantity.";

/// Numbers of replicates of a cell.
struct Replicates {
    std::int64_t failed = 0;
    std::int64_t measured = 0;

    [[nodiscard]] Html html() const {
        return Html::raw(failed > 0 ? fmt::format("{}<small>{} failed</small>", measured, failed)
                                    : std::to_string(measured));
    }
};

std::map<std::int64_t, Replicates> replicates_of_cells(Database& store) {
    std::map<std::int64_t, Replicates> cells;
    Statement query(store, "SELECT cell_id, SUM(failed), SUM(reps) - SUM(failed) FROM batch GROUP BY cell_id");
    while (query.step()) cells[query.integer(0)] = {query.integer(1), query.integer(2)};
    return cells;
}

/// The note beside a mean that is not over all measured replicates.
std::string partial(std::int64_t defined, std::int64_t measured) {
    return defined < measured ? fmt::format("<small class=\"part\">{} of {}</small>", defined, measured) : "";
}

/// A mean of a metric with its standard error, in bold for the best method.
Html shown_mean(const std::string& metric, const MethodMean& mean, std::int64_t measured, double scale = 1.0) {
    if (mean.n + mean.failed == 0) return "-";
    const std::string text =
        escape(with_error(scale * mean.mean, scale * mean.error, 4, scale * usual_size_of(metric)));
    return Html::raw((mean.best ? "<b>" + text + "</b>" : text) + partial(mean.n, measured));
}

/// The paper's tables, and what their notes depend on.
struct PaperTables {
    std::string markup = {};
    std::size_t clusters = 0;
    bool attention = false;
    bool blockwise = false;
};

/// The tables of one side, which has rows `first` to `end`: one for each group of metrics, so that none is wide.
void add_side(const MethodTable& table, std::size_t first, std::size_t end, std::size_t most_bytes, PaperTables& made) {
    std::int64_t blocks = 0;
    for (std::size_t r = first; r < end; ++r)
        for (const auto& mean : table.rows[r].means) {
            blocks = std::max(blocks, mean.n + mean.failed);
            made.clusters = std::max(made.clusters, mean.parts.sums.size());
        }
    const std::string& side = table.rows[first].group;
    const char* unit = side == "caches" ? "documents or prompts" : "blocks";
    for (const auto group : {MetricGroup::of_codecs, MetricGroup::of_attention, MetricGroup::of_models}) {
        std::vector<std::string> heads = {"method, bit width B"};
        std::vector<std::size_t> columns;
        for (const auto& metric : metrics_of(group))
            for (std::size_t c = 0; c < table.columns.size(); ++c) {
                bool measured = false;
                for (std::size_t r = first; r < end; ++r) measured = measured || table.rows[r].means[c].n > 0;
                if (!measured || table.columns[c].metric != metric) continue;
                columns.push_back(c);
                heads.push_back("#" + heading_of(metric));
                made.blockwise = made.blockwise || metric == "relative_l2";
            }
        if (columns.empty()) continue;
        const bool attention = group == MetricGroup::of_attention;
        made.attention = made.attention || attention;
        HtmlTable shown(fmt::format("{}, {} {}{}", side, blocks, unit, attention ? ": attention" : ""), heads);
        shown.limit(most_bytes, all_means);
        for (std::size_t r = first; r < end; ++r) {
            const auto& row = table.rows[r];
            std::vector<Html> cells = {name_of(row)};
            for (const auto c : columns) {
                const std::string& metric = table.columns[c].metric;
                cells.push_back(shown_mean(metric, row.means[c], blocks, scale_of(metric)));
            }
            shown.add(cells);
        }
        made.markup += shown.html();
    }
}

/// The paper's tables, by side and group of metrics, with their notes.
std::string paper_tables(Database& store, std::size_t most_bytes) {
    const MethodTable table = method_table(store);
    PaperTables made;
    for (std::size_t first = 0; first < table.rows.size();) {
        std::size_t end = first;
        while (end < table.rows.size() && table.rows[end].group == table.rows[first].group) ++end;
        add_side(table, first, end, most_bytes, made);
        first = end;
    }
    if (made.markup.empty()) return "";
    Statement cluster(store, "SELECT min(txt) FROM factor WHERE name = 'cluster_by'");
    std::string random = cluster.step() ? errors_sentence(cluster.text(0)) : "";
    if (!random.empty()) random += " ";
    std::string limits = clusters_limits(table);
    if (!limits.empty()) limits = "; " + limits;
    if (!made.blockwise)
        return made.markup +
               paragraph(fmt::format(
                   "Means over documents or prompts, with standard errors over them ({}{}); losses are differences "
                   "from full precision on the same document or prompt. {}{} Stored bits: bits an entry.",
                   made.clusters, limits, random, meaning_of_bold));
    return made.markup +
           paragraph(fmt::format(
               "Means over blocks: 34.12(40) is 34.12 with a standard error of 0.40, clustered ({} clusters{}). {}{}",
               made.clusters, limits, random, meaning_of_bold)) +
           paragraph(
               "Bit width B: bits of the index of an entry. Stored bits: all bits of a block divided by its entries, "
               "counted from the bytes. Paper bits: b + r (n + d) b_s / (n d), norms left out. Cosine: error of the "
               "cosine of two different rows, one of them decoded and renormalised as in the paper. Product: the same "
               "without renormalising. The bias is the mean of such errors, std their standard deviation.") +
           (made.attention
                ? paragraph("Attention over the whole sequence. Logit error: root mean square error of a logit. KL: "
                            "divergence of the weights from the exact ones. Same top weight, same top 8: how many of "
                            "the largest and of the 8 largest weights stay. Output error: of the attention output, "
                            "relative, with this side coded, and with both.")
                : "");
}

/// Relative error of every codec for each head.
std::string heads_table(Database& store, const ShownCells& shown, std::size_t most_bytes) {
    std::vector<std::string> columns = {"cell", "#rows", "#columns"};
    std::map<std::int64_t, std::size_t> column;
    Statement methods(store,
                      "SELECT method_id, name FROM method WHERE kind = 'codec' AND method_id IN (SELECT method_id "
                      "FROM v_summary WHERE metric = 'relative_l2') ORDER BY method_id");
    std::vector<std::string> left_out;
    while (methods.step()) {
        if (columns.size() >= most_columns) {
            left_out.push_back(methods.text(1));
            continue;
        }
        column[methods.integer(0)] = columns.size();
        columns.push_back("#" + methods.text(1));
    }
    if (column.empty()) return "";
    HtmlTable table("relative L2 error in percent, cell by cell", columns);
    table.limit(most_bytes, all_means);
    Statement query(store,
                    "SELECT s.cell_id, c.label, c.n, c.d, s.method_id, s.mean, s.mcse FROM v_summary s JOIN cell c "
                    "USING(cell_id) WHERE s.metric = 'relative_l2' ORDER BY s.cell_id, s.method_id");
    std::vector<Html> cells;
    std::int64_t current = std::numeric_limits<std::int64_t>::min();
    const auto finish = [&] {
        if (!cells.empty()) table.add(cells);
    };
    while (query.step()) {
        if (!shown.contains(query.integer(0)) || !column.contains(query.integer(4))) continue;
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
    return folded(fmt::format("{} by layer and head", counted(table.rows(), "cell")),
                  table.html() + columns_left_out(left_out));
}

/// Metrics of the sample itself, which do not depend on a method: one row per cell, one column per metric, with the
/// limit of theory below each mean.
std::string sample_table(Database& store, const PagePlace& place, const ShownCells& shown, std::size_t most_bytes) {
    std::vector<std::string> columns = {"cell", "#replicates"};
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> column;
    Statement names(store,
                    "SELECT DISTINCT m.metric_id, m.k, mt.name FROM moment m JOIN metric mt USING(metric_id) JOIN "
                    "method me USING(method_id) WHERE me.kind = 'sample' ORDER BY m.metric_id, m.k");
    std::vector<std::string> left_out;
    while (names.step()) {
        const std::string name = name_of(names.text(2), names.integer(1));
        if (columns.size() >= most_columns) {
            left_out.push_back(name);
            continue;
        }
        column[{names.integer(0), names.integer(1)}] = columns.size();
        columns.push_back("#" + name);
    }
    if (column.empty()) return "";
    HtmlTable table("", columns);
    table.limit(most_bytes, all_means);
    auto counts = replicates_of_cells(store);
    Statement means(store,
                    "SELECT s.metric_id, s.k, s.n, s.mean, s.mcse, t.value FROM v_summary s JOIN method m "
                    "USING(method_id) LEFT JOIN theory t ON t.cell_id = s.cell_id AND t.quantity = s.metric AND t.k = "
                    "s.k WHERE s.cell_id = ?1 AND m.kind = 'sample'");
    Statement cell(store, "SELECT cell_id, label FROM cell ORDER BY cell_id");
    while (cell.step()) {
        if (!shown.contains(cell.integer(0))) continue;
        std::vector<Html> cells(columns.size(), Html("-"));
        cells[0] = cell.text(1);
        const auto& replicates = counts[cell.integer(0)];
        bool measured = false;
        means.reset();
        means.bind(1, cell.integer(0));
        while (means.step()) {
            const auto found = column.find({means.integer(0), means.integer(1)});
            if (found == column.end()) continue;
            measured = true;
            std::string text = escape(with_error(means.real(3), means.real(4)));
            text += partial(means.integer(2), replicates.measured);
            if (!means.is_null(5)) text += fmt::format("<small>limit {}</small>", escape(four_digits(means.real(5))));
            cells[found->second] = Html::raw(text);
        }
        if (!measured) continue;
        cells[1] = replicates.html();
        table.add(cells);
    }
    return titled(place, "The data beside the limits of theory", table, left_out);
}

/// The methods of one kind in all cells shown.
std::string kind_table(Database& store, const MethodTable& methods, const PagePlace& place, const std::string& kind,
                       const std::string& title, std::size_t most_bytes) {
    std::vector<std::string> columns = {"cell", kind, "#replicates"};
    std::vector<std::size_t> shown;
    std::vector<std::string> left_out;
    for (std::size_t c = 0; c < methods.columns.size(); ++c) {
        if (std::none_of(methods.rows.begin(), methods.rows.end(), [&](const MethodRow& row) {
                return row.kind == kind && row.means[c].n + row.means[c].failed > 0;
            }))
            continue;
        const std::string name = name_of(methods.columns[c].metric, methods.columns[c].k);
        if (columns.size() >= most_columns) {
            left_out.push_back(name);
            continue;
        }
        shown.push_back(c);
        columns.push_back("#" + name);
    }
    HtmlTable table("", columns);
    table.limit(most_bytes, all_means);
    auto counts = replicates_of_cells(store);
    for (const auto& row : methods.rows) {
        if (row.kind != kind) continue;
        const auto& replicates = counts[row.cell_id];
        std::vector<Html> cells = {row.group, name_of(row), replicates.html()};
        for (const auto c : shown)
            cells.push_back(shown_mean(methods.columns[c].metric, row.means[c], replicates.measured));
        table.add(cells);
    }
    return titled(place, title, table, left_out);
}

}  // namespace

std::string results_markup(Database& store, const PagePlace& place, const ShownCells& cells, std::size_t most_bytes) {
    const bool dump = is_dump_study(store);
    std::string markup = dump ? paper_tables(store, most_bytes) : "";
    std::string by_cell = sample_table(store, place, cells, most_bytes);
    if (dump) {
        by_cell += heads_table(store, cells, most_bytes);
    } else {
        const MethodTable methods = method_table(store, {.cells = cells.ids});
        const std::string tables = kind_table(store, methods, place, "estimator", "Estimators", most_bytes) +
                                   kind_table(store, methods, place, "codec", "Codecs", most_bytes);
        by_cell += tables + (tables.empty() ? "" : paragraph(meaning_of_bold));
    }
    if (!by_cell.empty()) markup += stopping_note(store) + cells.note + by_cell;
    if (!by_cell.empty() && !dump)
        markup += paragraph(
            "A limit is what theory predicts for large matrices of the same shape. The metrics of the columns are "
            "defined under Words and conventions.");
    if (markup.find("<small class=\"part\">") != std::string::npos) markup += paragraph(meaning_of_partial);
    return markup;
}

}  // namespace spiked::reports
