#include "reports/figures/answer_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

/// The value by which the rows of the map select; none for a part of the results that they do not show.
std::optional<std::size_t> row_value(const validation::Recall& part, AnswerRows rows) {
    if (!part.context) return {};
    return rows == AnswerRows::depth ? part.tenth : part.needles;
}

}  // namespace

Figure answer_figure(const validation::GeneratedAnswers& found, AnswerRows rows) {
    const bool by_depth = rows == AnswerRows::depth;
    Figure figure;
    figure.title = fmt::format("recall of {} facts in {} prompts, {}", found.rows.front().recall.asked,
                               found.rows.front().recall.prompts, found.file.model);
    figure.description = fmt::format(
        "The fraction of facts that the model states in its answer, by the tokens of the prompt and {}.",
        by_depth ? "the depth of the fact (0 %: the beginning of the text)" : "the number of facts asked at once");
    figure.columns = {"method", "#context", by_depth ? "#depth" : "#needles", "#asked", "#recall", "#low", "#high"};
    figure.csv = csv_line({"method", "context", by_depth ? "depth" : "needles", "asked", "recall", "low", "high"});
    std::set<std::size_t> contexts, values;
    for (const auto& part : found.rows.front().parts)
        if (const auto value = row_value(part, rows)) (contexts.insert(*part.context), values.insert(*value));
    MapAxes axes{"tokens of prompt and answer", by_depth ? "depth in %" : "facts asked at once", {}, {}};
    for (const std::size_t context : contexts) axes.columns.push_back(std::to_string(context));
    for (const std::size_t value : values)
        axes.rows.push_back(by_depth ? fmt::format("{}-{}", 10 * value, 10 * (value + 1)) : std::to_string(value));

    std::vector<MapBox> boxes;
    for (std::size_t r = 0; r < found.rows.size(); ++r) {
        const auto& row = found.rows[r];
        const std::string panel =
            row.method == "none"
                ? "full precision"
                : fmt::format("{}, {:.2f} bits", method_at(row.method, row.budget), row.ledger.total());
        for (const auto& part : row.parts) {
            const auto value = row_value(part, rows);
            if (!value) continue;
            const auto column = static_cast<std::size_t>(std::distance(contexts.begin(), contexts.find(*part.context)));
            const auto at = static_cast<std::size_t>(std::distance(values.begin(), values.find(*value)));
            const std::vector<std::string> cells = {
                panel,           axes.columns[column], axes.rows[at], std::to_string(part.asked), exact(part.fraction),
                exact(part.low), exact(part.high)};
            figure.rows.push_back(cells);
            figure.csv += csv_line(cells);
            if (r < most_panels) boxes.push_back({panel, column, at, part.fraction});
        }
    }
    if (found.rows.size() > most_panels)
        figure.problem = fmt::format("the first {} of {} methods are shown", most_panels, found.rows.size());
    draw_map(figure, boxes, axes, "recall", {0.0, 1.0});
    return figure;
}

}  // namespace spiked::reports
