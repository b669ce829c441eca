// Inner-product bias of methods by kind of query, itself or relative to a plain quantizer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/method_table.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/metrics/block_metrics.hpp"

namespace spiked::reports {
namespace {

using validation::paired_ratio;

std::string short_query(std::string_view suffix) {
    return suffix.empty()         ? "others"
           : suffix == "_query"   ? "model's"
           : suffix == "_own"     ? "own"
           : suffix == "_aligned" ? "top"
                                  : std::string(suffix.substr(1));
}

std::optional<std::size_t> column_of(const MethodTable& table, const std::string& metric) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
        if (table.columns[c].metric == metric) return c;
    return std::nullopt;
}

/// The value of one kind of query: a bias, or its ratio to the bias of the first method.
struct QueryValue {
    std::string query;
    validation::MeanAndError value;
};

/// The ratios of biases, for the kinds of query whose bias in the first method differs from zero.
std::vector<QueryValue> ratios(const MethodTable& table, const MethodRow& row, const MethodRow& first) {
    std::vector<QueryValue> found;
    for (const auto& model : validation::query_models()) {
        const auto column = column_of(table, "ip_bias_plain" + std::string(model.suffix));
        if (!column || row.means[*column].parts.sums.empty()) continue;
        const auto& denominator = first.means[*column].parts;
        if (!denominator.mean().beyond_noise()) continue;
        const auto ratio = paired_ratio(row.means[*column].parts, denominator);
        found.push_back({short_query(model.suffix), {ratio.value, ratio.error()}});
    }
    return found;
}

/// The biases themselves, for every kind of query that was measured.
std::vector<QueryValue> biases(const MethodTable& table, const MethodRow& row) {
    std::vector<QueryValue> found;
    for (const auto& model : validation::query_models()) {
        const auto column = column_of(table, "ip_bias_plain" + std::string(model.suffix));
        if (!column || row.means[*column].n == 0) continue;
        found.push_back({short_query(model.suffix), {row.means[*column].mean, row.means[*column].error}});
    }
    return found;
}

/// Label of the squared relative L2 error, which is shown beside the ratios of biases.
const std::string squared_error = "error\u00B2";

/// The kinds of query from left to right, then the squared error where ratios are shown.
std::vector<std::string> columns_of_queries(bool ratio_wanted) {
    std::vector<std::string> queries;
    for (const auto& model : validation::query_models()) queries.push_back(short_query(model.suffix));
    if (ratio_wanted) queries.push_back(squared_error);
    return queries;
}

/// The method `plain` among the codecs of the same group and B, or the first of them.
const MethodRow& first_of(const MethodTable& table, const MethodRow& row, const std::string& plain) {
    const auto comparable = [&](const MethodRow& other) {
        return other.kind == "codec" && other.group == row.group && other.bits == row.bits &&
               other.cell_id == row.cell_id;
    };
    const auto named = std::find_if(table.rows.begin(), table.rows.end(),
                                    [&](const MethodRow& other) { return comparable(other) && other.method == plain; });
    return named != table.rows.end() ? *named : *std::find_if(table.rows.begin(), table.rows.end(), comparable);
}

/// The values of one method: biases, or their ratios followed by the ratio of the squared errors.
std::vector<QueryValue> values_of(const MethodTable& table, const MethodRow& row, const MethodRow& first,
                                  bool ratio_wanted) {
    if (!ratio_wanted) return biases(table, row);
    if (first.method_id == row.method_id) return {};
    auto found = ratios(table, row, first);
    const auto error = column_of(table, "relative_l2");
    if (found.empty() || !error || row.means[*error].parts.sums.empty()) return found;
    const auto ratio = paired_ratio(row.means[*error].parts, first.means[*error].parts);
    found.push_back({squared_error, {ratio.value * ratio.value, 2.0 * ratio.value * ratio.error()}});
    return found;
}

struct BiasPoints {
    PanelSeries series;
    Range y_range;
    std::set<std::string> queries;  ///< kinds that have a value
    std::size_t bias_count = 0;     ///< values without those of the squared error
    double largest = 0.0;
    std::string largest_text;
};

BiasPoints gather_biases(validation::Database& store, const Json& spec, bool ratio_wanted, Figure& figure) {
    BiasPoints all;
    all.y_range.take(0.0);
    if (ratio_wanted) all.y_range.take(1.0);
    const MethodTable table = method_table(store);
    const auto names = short_names(read_cells(store));
    const auto style_of = method_styles(store);
    const std::string plain = text_of(spec, "over");
    const std::string bits = text_of(spec, "bits");
    const auto queries = columns_of_queries(ratio_wanted);
    std::map<std::string, std::size_t> method_index;
    for (const auto& row : table.rows) {
        if (row.kind != "codec" || (!bits.empty() && row.bits != bits)) continue;
        const MethodRow& first = first_of(table, row, plain);
        const auto found = values_of(table, row, first, ratio_wanted);
        if (found.empty()) continue;
        const auto name = names.find(row.cell_id);
        const std::string panel =
            fmt::format("{}, B = {}", name == names.end() || name->second.empty() ? row.group : name->second, row.bits);
        Series* series = all.series.find(panel, row.method, style_of.at(row.method));
        if (series == nullptr) continue;
        const std::size_t index = method_index.emplace(row.method, method_index.size()).first->second;
        for (const auto& entry : found) {
            const auto position = std::find(queries.begin(), queries.end(), entry.query) - queries.begin();
            // Methods are shifted so that their error bars do not hide each other.
            const double shift = 0.12 * (static_cast<double>(index % 5) - 2.0);
            series->points.push_back({static_cast<double>(position) + shift, entry.value.mean, entry.value.mcse});
            all.y_range.take(entry.value.mean - entry.value.mcse);
            all.y_range.take(entry.value.mean + entry.value.mcse);
            const std::string text = with_error(entry.value.mean, entry.value.mcse);
            const std::string over = ratio_wanted ? first.method : "";
            figure.rows.push_back({panel, row.group, entry.query, row.method, over, text});
            figure.csv += csv_line(
                {panel, row.group, entry.query, row.method, over, exact(entry.value.mean), exact(entry.value.mcse)});
            all.queries.insert(entry.query);
            if (entry.query == squared_error) continue;
            ++all.bias_count;
            if (std::abs(entry.value.mean) > all.largest) {
                all.largest = std::abs(entry.value.mean);
                all.largest_text = fmt::format("{} ({}, {}, queries: {})", text, row.method, panel, entry.query);
            }
        }
    }
    return all;
}

/// Removes the columns of a panel that have no points (values have no queries of the model) by moving the other points
/// to the left. Returns the kinds of query that remain in each panel.
std::map<std::string, std::set<std::size_t>> remove_empty_columns(PanelSeries& all) {
    std::map<std::string, std::set<std::size_t>> columns;
    for (auto& [panel, of_panel] : all.panels) {
        auto& used = columns[panel];
        for (const auto& [label, series] : of_panel)
            for (const auto& point : series.points) used.insert(static_cast<std::size_t>(std::lround(point.x)));
        for (auto& [label, series] : of_panel)
            for (auto& point : series.points) {
                const auto old = static_cast<std::size_t>(std::lround(point.x));
                point.x -= static_cast<double>(old) - static_cast<double>(std::distance(used.begin(), used.find(old)));
            }
    }
    return columns;
}

std::string description_of(const BiasPoints& all, std::size_t rows, bool ratio_wanted) {
    std::vector<std::string> kinds;
    for (const auto& model : validation::query_models())
        if (all.queries.contains(short_query(model.suffix)))
            kinds.push_back(fmt::format("{} ({})", short_query(model.suffix), model.queries));
    if (!ratio_wanted)
        return fmt::format(
            "{} of inner products (not renormalised, in units of the norms); queries: {}. Bars are one standard "
            "error. Largest in size: {}.",
            counted(rows, "mean error"), fmt::join(kinds, "; "), all.largest_text);
    std::string text = fmt::format(
        "{} of mean errors of inner products (not renormalised) to those of the plain quantizer of the same B; "
        "queries: {}. Bars are one standard error, from paired parts. Largest in size: {}. Left out where the bias of "
        "the plain quantizer is within the noise: less than two standard errors from zero, or with few parts less "
        "than the quantile of Student's law of the same probability.",
        counted(all.bias_count, "ratio"), fmt::join(kinds, "; "), all.largest_text);
    if (all.queries.contains(squared_error))
        text += fmt::format(
            " {} of error\u00B2, the squared relative L2 error: a bias in proportion to the distortion has the same "
            "ratio.",
            counted(rows - all.bias_count, "ratio"));
    return text;
}

}  // namespace

std::vector<Figure> bias_by_query(validation::Database& store, const Json& spec) {
    const std::string of = text_of(spec, "of");
    const bool ratio_wanted = of != "bias";
    Figure figure;
    figure.title = ratio_wanted ? "Bias of inner products over that of the plain quantizer"
                                : "Bias of inner products by kind of query";
    if (of != "ratio" && of != "bias")
        return {without_data(figure.title, fmt::format("of = \"{}\" is not possible (ratio and bias are)", of))};
    figure.columns = {"panel", "cell", "query", "method", "over", "#" + of};
    figure.csv = csv_line({"panel", "cell", "query", "method", "over", of, "mcse"});
    BiasPoints all = gather_biases(store, spec, ratio_wanted, figure);
    if (figure.rows.empty())
        return {without_data(
            figure.title, ratio_wanted ? "the store holds no two codecs of one bit width where the bias of the first "
                                         "differs from zero"
                                       : "the store holds no bias of a codec")};
    const auto columns = remove_empty_columns(all.series);
    const auto queries = columns_of_queries(ratio_wanted);
    const auto& order = all.series.order;
    auto [data, drawn] = draw_panels(all.series, false);
    for (std::size_t p = 0; p < order.size(); ++p) {
        std::vector<std::string> tics;
        for (const std::size_t query : columns.at(order[p]))
            tics.push_back(fmt::format("{} {}", gnuplot_quoted(queries[query]), tics.size()));
        drawn[p].settings +=
            fmt::format("set xtics nomirror ({})\nset xrange [-0.5:{}.5]\n", fmt::join(tics, ", "), tics.size() - 1);
        drawn[p].plots.insert(drawn[p].plots.begin(),
                              fmt::format("{} with lines lw 1 dt 3 lc rgb '#888888'", ratio_wanted ? 1 : 0));
    }
    figure.description = description_of(all, figure.rows.size(), ratio_wanted);
    if (all.series.left_out > 0)
        figure.problem = fmt::format("{} methods are not drawn (at most {} panels and {} series are)",
                                     all.series.left_out, most_panels, most_labels);
    figure.script =
        panel_script(figure.title, data,
                     fmt::format("set yrange {}\nset xlabel 'queries'\nset ylabel '{}'\n", all.y_range.text(0.06),
                                 ratio_wanted ? "ratio to the plain quantizer" : "bias"),
                     drawn, legend_of(all.series.styles, false, false), {.columns = order.size() == 1 ? 1 : 2});
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports
