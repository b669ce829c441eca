#include "reports/tables/kv_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "core/text/printable.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/text_table.hpp"
#include "theory/quantization/rate_distortion.hpp"

namespace spiked::reports {
namespace {

using validation::MeanAndError;

std::string value_text(const MeanAndError& value) { return with_error(value.mean, value.mcse); }

using Columns = std::vector<std::string>;
const Columns query_columns = {"ip_bias_random",  "ip_std_random",  "ip_bias_plain_random",  "ip_std_plain_random",
                               "ip_bias_aligned", "ip_std_aligned", "ip_bias_plain_aligned", "ip_std_plain_aligned",
                               "ip_bias_own",     "ip_std_own",     "ip_bias_plain_own",     "ip_std_plain_own",
                               "ip_bias_query",   "ip_std_query",   "ip_bias_plain_query",   "ip_std_plain_query"};

std::string shown(const std::string& metric, const MeanAndError& value) {
    const double scale = scale_of(metric);
    return with_error(scale * value.mean, scale * value.mcse, 4, scale * usual_size_of(metric));
}

/// A table of one side: method and bits, then the metrics of `columns` that have a heading and were measured.
std::string side_table(const validation::KvTable& table, const std::string& side, const Columns& columns) {
    Columns filled;
    std::vector<std::string> header = {"method", "B"};
    for (const auto& metric : columns) {
        const std::string heading = narrow_heading_of(metric);
        if (heading.empty() || std::none_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
                return row.side == side && !std::isnan(row.of(metric).mean);
            }))
            continue;
        filled.push_back(metric);
        header.push_back(heading);
    }
    TextTable text(header);
    for (const auto& row : table.rows) {
        if (row.side != side) continue;
        std::vector<std::string> cells = {row.method, fmt::format("{}", row.bits)};
        for (const auto& metric : filled) cells.push_back(shown(metric, row.of(metric)));
        text.add(cells);
    }
    return text.text();
}

/// Whether a table shows a rounding error as 0.
bool shows_rounding(const validation::KvTable& table) {
    const auto is_rounding = [](const validation::KvRow& row, const std::string& metric) {
        const auto value = row.of(metric);
        return value.mean != 0.0 && shown(metric, value) == "0";
    };
    return std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
        for (const auto& columns :
             {metrics_of(MetricGroup::of_codecs), query_columns, metrics_of(MetricGroup::of_attention)})
            for (const auto& metric : columns)
                if (is_rounding(row, metric)) return true;
        return false;
    });
}

/// Methods at equal bits, then a sentence with those that are not compared. Empty when there are neither.
std::string equal_bits_table(const validation::EqualBitsTable& equal, const std::string& side) {
    const EqualBitsRows found = equal_bits_rows(equal, side);
    std::string text;
    if (!found.rows.empty()) {
        TextTable table(found.header);
        for (const auto& row : found.rows) table.add(row);
        text = table.text();
    }
    return found.outside.empty() ? text : text + one_line(found.outside) + "\n";
}

double shared_bits(const validation::KvRow& row) { return row.of("shared_bits").mean; }

/// The smallest relative L2 error of any code of independent normal entries at this number of bits (Shannon). It bounds
/// codes that treat each row alone.
double normal_bound(double bits) { return std::sqrt(theory::shannon_distortion(bits)); }

std::string cluster_name(const std::string& cluster) {
    return cluster == "head" ? "layer and head" : one_line(cluster);
}

/// How the rows are clustered and how wide their limits are, as in `layer and head (4 clusters), 3 degrees of freedom:
/// 95 % limits 3.18 standard errors away`
std::string clusters_text(const validation::KvTable& table) {
    double fewest = std::numeric_limits<double>::quiet_NaN();
    double most = fewest;
    for (const auto& row : table.rows) {
        fewest = std::fmin(fewest, row.degrees());
        most = std::fmax(most, row.degrees());
    }
    const std::string limits = limits_text(fewest, most);
    return fmt::format("{} ({}{}){}{}", cluster_name(table.cluster), counted(table.clusters, "cluster"),
                       table.partial ? fmt::format(" of {}, the store is partial", table.planned_clusters) : "",
                       limits.empty() ? "" : ", ", limits);
}

/// Which notes the columns of a frontier need.
struct FrontierNotes {
    bool of_blocks = false;
    bool attention = false;
    bool shared_bits = false;
};

/// The rows of a side by stored bits, without those that repeat a method without unrope.
std::vector<std::size_t> rows_by_bits(const validation::KvTable& table, std::string_view side) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < table.rows.size(); ++i)
        if (table.rows[i].side == side && !repeats_without_unrope(table, table.rows[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return table.rows[a].of("bits_per_entry").mean < table.rows[b].of("bits_per_entry").mean;
    });
    return order;
}

/// The methods of a side with their bits and errors; those on the hull are marked.
TextTable frontier_lines(const validation::KvTable& table, const std::vector<std::size_t>& order,
                         const std::vector<bool>& hull, FrontierNotes& notes) {
    const auto measured = [&](std::string_view name) {
        return std::any_of(order.begin(), order.end(),
                           [&](std::size_t i) { return !std::isnan(table.rows[i].of(name).mean); });
    };
    const bool calibrated =
        std::any_of(order.begin(), order.end(), [&](std::size_t i) { return shared_bits(table.rows[i]) > 0.0; });
    std::vector<std::string> columns;
    std::copy_if(frontier_metrics().begin(), frontier_metrics().end(), std::back_inserter(columns), measured);
    notes.of_blocks = notes.of_blocks || measured("relative_l2");
    notes.attention = notes.attention || measured("attention_logits") || measured("attention_output");
    notes.shared_bits = notes.shared_bits || calibrated;
    std::vector<std::string> header = {"", "method", "B", "bits"};
    for (const auto& column : columns) {
        header.push_back(narrow_heading_of(column));
        if (column == "relative_l2") header.emplace_back("normal entries %");
    }
    if (calibrated) header.emplace_back("shared bits");
    TextTable lines(header);
    for (const std::size_t i : order) {
        const auto& row = table.rows[i];
        const auto bits = row.of("bits_per_entry");
        std::vector<std::string> cells = {hull[i] ? "*" : "", method_at(row.method, row.budget),
                                          fmt::format("{}", row.bits), value_text(bits)};
        for (const auto& column : columns) {
            const auto value = row.of(column);
            cells.push_back(std::isnan(value.mean) ? "" : shown(column, value));
            if (column == "relative_l2") cells.push_back(fmt::format("{:.2f}", 100.0 * normal_bound(bits.mean)));
        }
        if (calibrated) cells.push_back(shared_bits(row) > 0.0 ? fmt::format("{:.3g}", shared_bits(row)) : "");
        lines.add(cells);
    }
    return lines;
}

/// The methods of a side at equal bits, and those that were not measured on both sides of these bits. Empty where there
/// are none.
std::string equal_bits_text(const validation::KvTable& table, const std::vector<std::size_t>& order,
                            const std::string& metric, const std::vector<const validation::EqualBits*>& methods,
                            const std::string& rows) {
    if (methods.empty()) return "";
    TextTable best({rows, narrow_heading_of(metric), "ratio to the best"});
    for (const auto* one : methods)
        best.add({one->method, shown(metric, one->error), one == methods.front() ? "1" : value_text(one->ratio)});
    std::string text = fmt::format("at {:.4g} bits, the best first\n{}", methods.front()->bits_per_entry, best.text());
    if (methods.size() > 1 && methods[1]->ratio.mcse > 0.0)
        text += fmt::format("{} is ahead of {} by {}\n", one_line(methods[0]->method), one_line(methods[1]->method),
                            standard_errors((methods[1]->ratio.mean - 1.0) / methods[1]->ratio.mcse));
    std::set<std::string> known;
    for (const auto* one : methods) known.insert(one->method);
    std::vector<std::string> elsewhere;
    for (const std::size_t i : order) {
        const auto& name = table.rows[i].method;
        if (std::isnan(table.rows[i].of(metric).mean) || !known.insert(name).second) continue;
        const double least = table.rows[i].of("bits_per_entry").mean;
        double most = least;
        for (const std::size_t j : order)  // by bits
            if (table.rows[j].method == name) most = table.rows[j].of("bits_per_entry").mean;
        elsewhere.push_back(least == most ? fmt::format("{} ({:.3g})", name, least)
                                          : fmt::format("{} ({:.3g} to {:.3g})", name, least, most));
    }
    if (!elsewhere.empty())
        text += one_line(fmt::format("not measured on both sides of {:.4g} bits (more --bits may change that): {}",
                                     methods.front()->bits_per_entry, fmt::join(elsewhere, ", "))) +
                "\n";
    return text + "\n";
}

}  // namespace

EqualBitsRows equal_bits_rows(const validation::EqualBitsTable& equal, const std::string& group) {
    EqualBitsRows found{{"method"}, {}, equal.outside_text(group)};
    auto& rows = found.rows;
    std::map<std::string, std::size_t> index_of;
    for (const auto& at : equal.rows) {
        if (at.group != group) continue;
        const bool first = rows.empty() || at.method == rows.front().front();
        if (first) found.header.insert(found.header.end(), {fmt::format("{:.4g} bits", at.bits_per_entry), "ratio"});
        const auto [index, is_new] = index_of.try_emplace(at.method, rows.size());
        if (is_new) rows.push_back({at.method});
        auto& row = rows[index->second];
        row.insert(row.end(), {shown("relative_l2", at.error), first ? "1" : value_text(at.ratio)});
    }
    return found;
}

std::string inputs_text(const std::vector<validation::KvInput>& inputs) {
    std::string text;
    for (const auto& input : inputs) {
        text +=
            fmt::format("{}  {}  {}\n", one_line(input.file), counted(input.blocks, "block"), printable(input.model));
        if (input.tokens_skipped > 0)
            text += fmt::format("  {} of partial last blocks left out\n", counted(input.tokens_skipped, "token"));
    }
    return text;
}

Json inputs_json(const std::vector<validation::KvInput>& inputs) {
    Json list = Json::array();
    for (const auto& input : inputs)
        list.push(Json::object({{"file", input.file},
                                {"sha256", input.sha256},
                                {"model", input.model.empty() ? Json() : Json(input.model)},
                                {"blocks", static_cast<std::int64_t>(input.blocks)},
                                {"tokens_skipped", static_cast<std::int64_t>(input.tokens_skipped)}}));
    return list;
}

std::string frontier_text(const validation::KvTable& table, const std::string& metric,
                          const std::vector<validation::EqualBits>& at,
                          const std::vector<validation::SpectrumReference>& references) {
    const auto hull = validation::convex_hull(table, metric);
    std::string text;
    FrontierNotes notes;
    for (const char* side : {"key", "value", "cache"}) {
        const auto order = rows_by_bits(table, side);
        if (order.empty()) continue;
        const TextTable lines = frontier_lines(table, order, hull, notes);
        const auto cases = table.rows[order.front()].blocks;
        const bool whole = side == std::string_view("cache");
        const std::string rows = whole ? side : fmt::format("{}s", side);
        text +=
            fmt::format("{}, {}\n{}\n", rows, counted(cases, whole ? one_line(table.cluster) : "block"), lines.text());
        std::vector<const validation::EqualBits*> methods;
        for (const auto& one : at)
            if (one.group == side) methods.push_back(&one);
        text += equal_bits_text(table, order, metric, methods, rows);
        text += references_text(references, side);
    }
    text += fmt::format(
        "* on the convex hull of the logarithm of the {} over stored bits.\nErrors clustered by {}; at equal bits "
        "interpolated between bit widths, ratios with paired clusters.\n{}\n",
        long_name_of(metric), clusters_text(table), errors_sentence(table.cluster));
    if (notes.of_blocks)
        text += "normal entries: the smallest error of any code of independent normal entries (Shannon).\n";
    if (!references.empty())
        text +=
            "water-filling: an ideal code of normal rows that knows the covariance of each head, at no bits; +ar: and "
            "what the token before says about each principal component. Codes that follow the text can be better.\n";
    if (notes.shared_bits)
        text +=
            "shared bits: those of a calibrated basis, per entry of these sequences; it serves all sequences and is "
            "not part of the bits.\n";
    if (notes.attention)
        text +=
            "logits: root mean square error of an attention logit; attention: relative error of the output with this "
            "side coded.\n";
    return text;
}

Json frontier_json(const validation::KvTable& table, const std::string& metric,
                   const std::vector<validation::EqualBits>& at,
                   const std::vector<validation::SpectrumReference>& references) {
    const auto hull = validation::convex_hull(table, metric);
    Json rows = Json::array();
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const auto& row = table.rows[i];
        const auto bits = row.of("bits_per_entry");
        Json line = Json::object({{"side", row.side},
                                  {"method", row.method},
                                  {"bits", bits_json(row.bits)},
                                  {"budget", row.budget ? Json(*row.budget) : Json()},
                                  {"bits_per_entry", bits.mean},
                                  {"mcse_bits_per_entry", bits.mcse},
                                  {"df", row.degrees()}});
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
                                {"mcse_ratio", one.ratio.mcse},
                                {"df", one.error.df}}));
    return Json::object({{"schema", "spiked.frontier/1"},
                         {"cluster", table.cluster},
                         {"clusters", table.clusters},
                         {"planned_clusters", table.planned_clusters},
                         {"partial", table.partial},
                         {"metric", metric},
                         {"rows", std::move(rows)},
                         {"at", std::move(best)},
                         {"references", references_json(references)}});
}

std::string kv_text(const validation::KvTable& table, const validation::EqualBitsTable& equal) {
    std::string text = inputs_text(table.inputs);
    for (const char* side : {"key", "value"}) {
        std::uint64_t blocks = 0;
        for (const auto& row : table.rows)
            if (row.side == side) blocks = row.blocks;
        if (blocks == 0) continue;
        text += fmt::format("\n{}s, {}\n{}", side, counted(blocks, "block"),
                            side_table(table, side, metrics_of(MetricGroup::of_codecs)));
        text += fmt::format("\n{}s, inner products with other queries, not renormalised\n{}", side,
                            side_table(table, side, query_columns));
        if (std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
                return row.side == side && !std::isnan(row.of("attention_output").mean);
            }))
            text += fmt::format("\n{}s, attention over the whole sequence\n{}", side,
                                side_table(table, side, metrics_of(MetricGroup::of_attention)));
        const std::string compared = equal_bits_table(equal, side);
        if (!compared.empty())
            text += fmt::format("\n{}s, {} at equal bits\n{}", side, narrow_heading_of("relative_l2"), compared);
    }
    text += fmt::format(
        "\nMeans over blocks; in brackets the standard error in the last digits, clustered by {}.\n{}\n"
        "bits: stored bits an entry, counted from the bytes. paper bits: b + r (n + d) b_s / (n d), norms left out.\n"
        "IP: error of the cosine of different rows, decoded rows renormalised as in the paper; plain: not "
        "renormalised.\nOther queries: random directions, the block's strongest direction, the row itself, the model's "
        "own.\n",
        clusters_text(table), errors_sentence(table.cluster));
    if (shows_rounding(table))
        text +=
            fmt::format("0 stands for rounding errors, which are below {:.0e} of the usual size.\n", rounding_level);
    if (!equal.rows.empty())
        text +=
            "Equal bits: the logarithm of the mean error interpolated between bit widths; ratio to the first method.\n";
    if (std::any_of(table.rows.begin(), table.rows.end(),
                    [](const auto& row) { return !std::isnan(row.of("attention_output").mean); }))
        text +=
            "Attention: root mean square error of a logit; divergence of the weights from the exact ones, in nats; "
            "fraction of largest weights, and of the 8 largest, that stay; relative error of the output with this "
            "side coded, and with both.\n";
    return text;
}

std::string ledger_text(const estimators::PerItem<double>& bits_per_entry) {
    TextTable table({"item", "bits an entry"});
    double total = 0.0;
    for (const auto& item : EnumNames<estimators::Item>::table) {
        const double bits = bits_per_entry[item.value];
        total += bits;
        if (bits > 0.0) table.add({std::string(item.name), fmt::format("{:.6f}", bits)});
    }
    table.add({"total", fmt::format("{:.6f}", total)});
    return table.text();
}

Json ledger_json(const estimators::PerItem<double>& bits_per_entry) {
    Json ledger = Json::object();
    for (const auto& item : EnumNames<estimators::Item>::table)
        ledger.set(std::string(item.name), bits_per_entry[item.value]);
    return ledger;
}

Json kv_json(const validation::KvTable& table, const validation::EqualBitsTable& equal) {
    Json rows = Json::array();
    for (const auto& row : table.rows) {
        Json line = Json::object({{"side", row.side},
                                  {"method", row.method},
                                  {"bits", bits_json(row.bits)},
                                  {"ledger", ledger_json(row.ledger)}});
        for (const Columns* columns :
             {&metrics_of(MetricGroup::of_codecs), &metrics_of(MetricGroup::of_attention), &query_columns})
            for (const auto& metric : *columns) {
                const std::string name = metric == "rank" ? "mean_rank" : metric;
                line.set(name, row.of(metric).mean).set("mcse_" + name, row.of(metric).mcse);
            }
        line.set("blocks", static_cast<std::int64_t>(row.blocks)).set("df", row.degrees());
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
                                         {"mcse_ratio_to_first", at.ratio.mcse},
                                         {"df", at.error.df}}));
    Json outside = Json::array();
    for (const auto& method : equal.outside)
        outside.push(Json::object({{"side", method.group},
                                   {"method", method.method},
                                   {"least_bits", method.least},
                                   {"most_bits", method.most}}));
    return Json::object({{"schema", "spiked.kv/1"},
                         {"inputs", inputs_json(table.inputs)},
                         {"cluster", table.cluster},
                         {"clusters", table.clusters},
                         {"planned_clusters", table.planned_clusters},
                         {"partial", table.partial},
                         {"rows", std::move(rows)},
                         {"equal_bits", std::move(at_equal_bits)},
                         {"equal_bits_outside", std::move(outside)}});
}

}  // namespace spiked::reports
