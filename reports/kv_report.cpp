#include "reports/kv_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/text_table.hpp"
#include "sim/printable.hpp"
#include "theory/rate_distortion.hpp"
#include "validation/experiment.hpp"

namespace spiked::reports {
namespace {

using validation::ClusteredValue;

std::string percent(const ClusteredValue& share) { return with_error(100.0 * share.mean, 100.0 * share.mcse); }
std::string plain(const ClusteredValue& value) { return with_error(value.mean, value.mcse); }

/// A number of the table: its metric, what it is called in JSON (the metric's own name where empty) and, if it is shown
/// in text, in which table and under which head.
struct Column {
    const char* metric;
    const char* json;
    const char* head;
    bool share = false;  ///< shown in percent
};

const std::vector<Column>& main_columns() {
    static const std::vector<Column> columns = {
        {"rank", "mean_rank", "mean rank"},     {"bits_per_entry", "", "bits"},      {"paper_bits", "", "paper bits"},
        {"relative_l2", "", "rel. L2 %", true}, {"ip_bias", "", "IP bias"},          {"ip_std", "", "IP std"},
        {"ip_bias_plain", "", "IP bias plain"}, {"ip_std_plain", "", "IP std plain"}};
    return columns;
}

const std::vector<Column>& attention_columns() {
    static const std::vector<Column> columns = {{"attention_logits", "", "logits"},
                                                {"attention_kl", "", "KL"},
                                                {"attention_top1", "", "top-1 %", true},
                                                {"attention_top8", "", "top-8 %", true},
                                                {"attention_output", "", "attention %", true},
                                                {"attention_output_both", "", "both %", true}};
    return columns;
}

const std::vector<Column>& query_columns() {
    static const std::vector<Column> columns = {{"ip_bias_random", "", ""},
                                                {"ip_std_random", "", ""},
                                                {"ip_bias_plain_random", "", "random"},
                                                {"ip_std_plain_random", "", "std"},
                                                {"ip_bias_aligned", "", ""},
                                                {"ip_std_aligned", "", ""},
                                                {"ip_bias_plain_aligned", "", "aligned"},
                                                {"ip_std_plain_aligned", "", "std"},
                                                {"ip_bias_own", "", ""},
                                                {"ip_std_own", "", ""},
                                                {"ip_bias_plain_own", "", "own row"},
                                                {"ip_std_plain_own", "", "std"},
                                                {"ip_bias_query", "", ""},
                                                {"ip_std_query", "", ""},
                                                {"ip_bias_plain_query", "", "dumped"},
                                                {"ip_std_plain_query", "", "std"}};
    return columns;
}

/// Method and bits, then the columns that have a head and, for some row of the side, a number.
std::string table_of(const validation::KvTable& table, const std::string& side, const std::vector<Column>& columns) {
    std::vector<const Column*> shown;
    for (const auto& column : columns)
        if (*column.head != '\0' && std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
                return row.side == side && !std::isnan(row.of(column.metric).mean);
            }))
            shown.push_back(&column);
    std::vector<std::string> heads = {"method", "B"};
    for (const Column* column : shown) heads.emplace_back(column->head);
    TextTable text(heads);
    for (const auto& row : table.rows) {
        if (row.side != side) continue;
        std::vector<std::string> cells = {row.method, fmt::format("{}", row.bits)};
        for (const Column* column : shown) cells.push_back((column->share ? percent : plain)(row.of(column->metric)));
        text.add(cells);
    }
    return text.text();
}

/// Methods below each other, bit levels beside each other, and who is not compared; empty when there is neither.
std::string equal_bits_table(const validation::EqualBitsTable& equal, const std::string& side) {
    std::vector<std::string> heads = {"method"};
    std::vector<std::vector<std::string>> lines;
    for (const auto& at : equal.rows) {
        if (at.group != side) continue;
        const bool first = lines.empty() || at.method == lines.front().front();
        if (first) heads.insert(heads.end(), {fmt::format("{:.4g} bits", at.bits_per_entry), "ratio"});
        auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.front() == at.method; });
        if (line == lines.end()) line = lines.insert(lines.end(), {at.method});
        line->insert(line->end(), {percent(at.error), first ? "1" : plain(at.ratio)});
    }
    std::string text;
    if (!lines.empty()) {
        TextTable table(heads);
        for (const auto& line : lines) table.add(line);
        text = table.text();
    }
    const std::string outside = equal.outside_text(side);
    return outside.empty() ? text : text + outside + "\n";
}

double shared_bits(const validation::KvRow& row) { return row.of("shared_bits").mean; }

/// What the best code of normal entries loses at as many bits (Shannon): the bound where rows are coded alone.
double normal_bound(double bits) { return std::sqrt(theory::shannon_distortion(bits)); }

/// What a frontier shows of a metric.
struct FrontierColumn {
    std::string metric;
    const char* head;
    const char* words;
    bool share = false;
};

const std::vector<FrontierColumn>& frontier_columns() {
    static const std::vector<FrontierColumn> columns = {
        {"relative_l2", "rel. L2 %", "relative L2", true},
        {"attention_logits", "logits", "attention logits", false},
        {"attention_output", "attention %", "attention output", true},
        {"added_nats", "added nats", "added nats a token", false},
        {"retrieval", "lost log p", "log-probability of answers lost", false},
        {"wrong_answers", "wrong %", "share of answers that are wrong", true}};
    return columns;
}

std::string shown(const FrontierColumn& column, const ClusteredValue& value) {
    if (std::isnan(value.mean)) return "";
    return column.share ? percent(value) : plain(value);
}

}  // namespace

const std::vector<std::string>& frontier_metrics() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto& column : frontier_columns()) all.push_back(column.metric);
        return all;
    }();
    return names;
}

std::string frontier_text(const validation::KvTable& table, const std::string& metric,
                          const std::vector<validation::EqualBits>& at) {
    const auto hull = validation::convex_hull(table, metric);
    const auto& all = frontier_columns();
    const auto& chosen = *std::find_if(all.begin(), all.end(), [&](const auto& c) { return c.metric == metric; });
    std::string text;
    bool attends = false;
    bool of_blocks = false;
    for (const char* side : {"key", "value", "cache"}) {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < table.rows.size(); ++i)
            if (table.rows[i].side == side && !repeats_without_unrope(table, table.rows[i])) order.push_back(i);
        if (order.empty()) continue;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return table.rows[a].of("bits_per_entry").mean < table.rows[b].of("bits_per_entry").mean;
        });
        const auto measured = [&](const FrontierColumn& column) {
            return std::any_of(order.begin(), order.end(),
                               [&](std::size_t i) { return !std::isnan(table.rows[i].of(column.metric).mean); });
        };
        const bool calibrated =
            std::any_of(order.begin(), order.end(), [&](std::size_t i) { return shared_bits(table.rows[i]) > 0.0; });
        std::vector<const FrontierColumn*> columns;
        for (const auto& column : all)
            if (measured(column)) columns.push_back(&column);
        of_blocks = of_blocks || measured(all.front());
        attends = attends || measured(all[1]) || measured(all[2]);
        std::vector<std::string> heads = {"", "method", "B", "bits"};
        for (const auto* column : columns) {
            heads.emplace_back(column->head);
            if (column == &all.front()) heads.emplace_back("normal entries %");
        }
        if (calibrated) heads.emplace_back("shared bits");
        TextTable lines(heads);
        for (const std::size_t i : order) {
            const auto& row = table.rows[i];
            const auto bits = row.of("bits_per_entry");
            std::vector<std::string> cells = {hull[i] ? "*" : "", method_at(row.method, row.budget),
                                              fmt::format("{}", row.bits), plain(bits)};
            for (const auto* column : columns) {
                cells.push_back(shown(*column, row.of(column->metric)));
                if (column == &all.front()) cells.push_back(fmt::format("{:.2f}", 100.0 * normal_bound(bits.mean)));
            }
            if (calibrated) cells.push_back(shared_bits(row) > 0.0 ? fmt::format("{:.3g}", shared_bits(row)) : "");
            lines.add(cells);
        }
        const auto cases = table.rows[order.front()].blocks;
        const bool whole = side == std::string_view("cache");
        const std::string rows = whole ? side : fmt::format("{}s", side);
        text += fmt::format("{}, {} {}\n{}\n", rows, cases, whole ? table.cluster + "s" : "blocks", lines.text());
        TextTable best({rows, chosen.head, "ratio to the best"});
        std::vector<const validation::EqualBits*> methods;
        for (const auto& one : at)
            if (one.group == side) {
                methods.push_back(&one);
                best.add({one.method, shown(chosen, one.error), methods.size() == 1 ? "1" : plain(one.ratio)});
            }
        if (!methods.empty())
            text += fmt::format("at {:.4g} bits, the best first\n{}", methods.front()->bits_per_entry, best.text());
        if (methods.size() > 1 && methods[1]->ratio.mcse > 0.0)
            text += fmt::format("{} is ahead of {} by {}\n", methods[0]->method, methods[1]->method,
                                standard_errors((methods[1]->ratio.mean - 1.0) / methods[1]->ratio.mcse));
        std::vector<std::string> elsewhere;
        for (const std::size_t i : order) {
            const auto& name = table.rows[i].method;
            const auto placed = [&](const auto* one) { return one->method == name; };
            if (!std::isnan(table.rows[i].of(metric).mean) &&
                std::find(elsewhere.begin(), elsewhere.end(), name) == elsewhere.end() &&
                std::none_of(methods.begin(), methods.end(), placed))
                elsewhere.push_back(name);
        }
        if (!methods.empty() && !elsewhere.empty())
            text += fmt::format("not measured on both sides of {:.4g} bits: {}\n", methods.front()->bits_per_entry,
                                fmt::join(elsewhere, ", "));
        if (!methods.empty()) text += '\n';
    }
    text += fmt::format(
        "* on the convex hull of the logarithm of the error ({}) over stored bits.\nErrors clustered by {} ({} "
        "clusters); at equal bits interpolated between bit widths, ratios with paired clusters.\n",
        chosen.words, table.cluster == "head" ? "layer and head" : table.cluster, table.clusters);
    if (of_blocks)
        text +=
            "normal entries: the least any code of them loses (Shannon). shared bits: of a calibrated basis, an entry "
            "of these sequences; it\nserves all sequences and is not among the bits.\n";
    if (attends)
        text +=
            "logits: root mean square error of an attention logit; attention: relative error of the output with this "
            "side coded.\n";
    return text;
}

Json frontier_json(const validation::KvTable& table, const std::string& metric,
                   const std::vector<validation::EqualBits>& at) {
    const auto hull = validation::convex_hull(table, metric);
    Json rows = Json::array();
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const auto& row = table.rows[i];
        const auto bits = row.of("bits_per_entry");
        Json line = Json::object({{"side", row.side},
                                  {"method", row.method},
                                  {"bits", validation::bits_json(row.bits)},
                                  {"budget", row.budget ? Json(*row.budget) : Json()},
                                  {"bits_per_entry", bits.mean},
                                  {"mcse_bits_per_entry", bits.mcse}});
        for (const auto& name : frontier_metrics())
            line.set(name, row.of(name).mean).set("mcse_" + name, row.of(name).mcse);
        line.set("shared_bits", row.of("shared_bits").mean).set("shannon_normal", normal_bound(bits.mean));
        line.set("on_hull", static_cast<bool>(hull[i]));
        rows.push(std::move(line));
    }
    Json best = Json::array();
    for (const auto& one : at)
        best.push(Json::object({{"side", one.group},
                                {"method", one.method},
                                {"bits_per_entry", one.bits_per_entry},
                                {metric, one.error.mean},
                                {"mcse_" + metric, one.error.mcse},
                                {"ratio", one.ratio.mean},
                                {"mcse_ratio", one.ratio.mcse}}));
    return Json::object({{"schema", "spiked.frontier/1"},
                         {"cluster", table.cluster},
                         {"clusters", table.clusters},
                         {"metric", metric},
                         {"rows", std::move(rows)},
                         {"at", std::move(best)}});
}

std::string kv_text(const validation::KvTable& table, const validation::EqualBitsTable& equal) {
    std::string text;
    for (const auto& input : table.inputs) {
        text += fmt::format("{}  {} blocks  {}\n", input.file, input.blocks, sim::printable(input.model));
        if (input.tokens_skipped > 0)
            text += fmt::format("  {} tokens of partial last blocks left out\n", input.tokens_skipped);
    }
    for (const char* side : {"key", "value"}) {
        std::uint64_t blocks = 0;
        for (const auto& row : table.rows)
            if (row.side == side) blocks = row.blocks;
        if (blocks == 0) continue;
        text += fmt::format("\n{}s, {} blocks\n{}", side, blocks, table_of(table, side, main_columns()));
        text += fmt::format("\n{}s, inner products with other queries, not renormalised: bias and std\n{}", side,
                            table_of(table, side, query_columns()));
        if (std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
                return row.side == side && !std::isnan(row.of("attention_output").mean);
            }))
            text += fmt::format("\n{}s, attention over the whole sequence\n{}", side,
                                table_of(table, side, attention_columns()));
        const std::string compared = equal_bits_table(equal, side);
        if (!compared.empty()) text += fmt::format("\n{}s, rel. L2 % at equal bits\n{}", side, compared);
    }
    text += fmt::format(
        "\nMeans over blocks; in brackets the standard error in the last digits, clustered by {} ({} clusters).\n"
        "bits: stored bits an entry, counted from the bytes. paper bits: b + r (n + d) b_s / (n d), norms left out.\n"
        "IP: error of the cosine of different rows, decoded rows renormalised as in the paper; plain: not "
        "renormalised.\nOther queries: random directions, the block's strongest direction, the row itself, the model's "
        "own.\n",
        table.cluster == "head" ? "layer and head" : table.cluster, table.clusters);
    if (!equal.rows.empty())
        text +=
            "Equal bits: the logarithm of the mean error interpolated between bit widths; ratio to the first method.\n";
    if (std::any_of(table.rows.begin(), table.rows.end(),
                    [](const auto& row) { return !std::isnan(row.of("attention_output").mean); }))
        text +=
            "Attention: root mean square error of a logit; divergence of the weights from the exact ones, in nats; "
            "share of largest weights,\nand of the 8 largest, that stay; relative error of the output with this side "
            "coded, and with both.\n";
    return text;
}

Json ledger_json(const std::vector<double>& bits_per_entry) {
    Json ledger = Json::object();
    for (std::size_t item = 0; item < estimators::item_count; ++item)
        ledger.set(std::string(estimators::item_names[item]), bits_per_entry[item]);
    return ledger;
}

Json kv_json(const validation::KvTable& table, const validation::EqualBitsTable& equal) {
    Json inputs = Json::array();
    for (const auto& input : table.inputs)
        inputs.push(Json::object({{"file", input.file},
                                  {"sha256", input.sha256},
                                  {"model", input.model.empty() ? Json() : Json(input.model)},
                                  {"blocks", static_cast<std::int64_t>(input.blocks)},
                                  {"tokens_skipped", static_cast<std::int64_t>(input.tokens_skipped)}}));
    Json rows = Json::array();
    for (const auto& row : table.rows) {
        Json line = Json::object({{"side", row.side},
                                  {"method", row.method},
                                  {"bits", validation::bits_json(row.bits)},
                                  {"ledger", ledger_json(row.ledger)}});
        std::vector<Column> columns = main_columns();
        columns.insert(columns.end(), attention_columns().begin(), attention_columns().end());
        columns.insert(columns.end(), query_columns().begin(), query_columns().end());
        for (const auto& column : columns) {
            const std::string name = *column.json != '\0' ? column.json : column.metric;
            line.set(name, row.of(column.metric).mean).set("mcse_" + name, row.of(column.metric).mcse);
        }
        line.set("blocks", static_cast<std::int64_t>(row.blocks));
        rows.push(std::move(line));
    }
    Json at_equal_bits = Json::array();
    for (const auto& at : equal.rows)
        at_equal_bits.push(Json::object({{"side", at.group},
                                         {"method", at.method},
                                         {"bits_per_entry", at.bits_per_entry},
                                         {"relative_l2", at.error.mean},
                                         {"mcse_relative_l2", at.error.mcse},
                                         {"ratio_to_first", at.ratio.mean},
                                         {"mcse_ratio_to_first", at.ratio.mcse}}));
    Json outside = Json::array();
    for (const auto& method : equal.outside)
        outside.push(Json::object({{"side", method.group},
                                   {"method", method.method},
                                   {"least_bits", method.least},
                                   {"most_bits", method.most}}));
    return Json::object({{"schema", "spiked.kv/1"},
                         {"inputs", std::move(inputs)},
                         {"cluster", table.cluster},
                         {"clusters", table.clusters},
                         {"rows", std::move(rows)},
                         {"equal_bits", std::move(at_equal_bits)},
                         {"equal_bits_outside", std::move(outside)}});
}

}  // namespace spiked::reports
