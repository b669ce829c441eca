// Figures of a dump study: ranks by layer and head, and the paper's picture of one head.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "reports/figures/color_scale.hpp"
#include "reports/figures/figure_parts.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/spectrum_figure.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t most_pictures = 8;    // each is a spectrum and heatmaps of about 150 kB
constexpr std::size_t largest_image = 192;  // pixels per side; larger blocks are averaged

struct RankBox {
    std::string panel;
    std::int64_t layer = 0;
    std::int64_t head = 0;
    double rank = 0.0;
    std::int64_t blocks = 0;
};

}  // namespace

std::vector<Figure> rank_map(Database& store, const Json& spec) {
    Figure figure;
    std::string method = text_of(spec, "method");
    if (method.empty()) {
        // The first method whose rank varies, else the first one that has a rank.
        Statement query(
            store,
            "SELECT method FROM v_summary JOIN method m USING(method_id) WHERE metric = 'rank' AND mean IS NOT NULL "
            "GROUP BY method_id ORDER BY MIN(mean) = MAX(mean), MAX(hi) <= 0, method_id LIMIT 1");
        if (query.step()) method = query.text(0);
    }
    figure.title = fmt::format("Mean rank of {} by layer and head", method.empty() ? "the signal" : method);
    Statement query(
        store,
        "SELECT (SELECT COUNT(DISTINCT txt) > 1 FROM factor WHERE name = 'model'), coalesce(model.txt, ''), side.txt, "
        "layer.num, head.num, SUM(s.n * s.mean) / SUM(s.n), SUM(s.n) FROM v_summary s JOIN factor side ON "
        "side.cell_id = s.cell_id AND side.name = 'side' JOIN factor layer ON layer.cell_id = s.cell_id AND "
        "layer.name = 'layer' JOIN factor head ON head.cell_id = s.cell_id AND head.name = 'head' LEFT JOIN factor "
        "model ON model.cell_id = s.cell_id AND model.name = 'model' WHERE s.metric = 'rank' AND s.method = ?1 AND "
        "s.mean IS NOT NULL AND layer.num IS NOT NULL AND head.num IS NOT NULL GROUP BY 2, 3, 4, 5 ORDER BY 2, 3, 4, "
        "5");
    query.bind(1, method);
    std::vector<RankBox> boxes;
    while (query.step()) {
        RankBox box{query.integer(0) != 0 ? query.text(2) + "s, " + query.text(1) : query.text(2) + "s",
                    query.integer(3), query.integer(4), query.real(5), query.integer(6)};
        boxes.push_back(std::move(box));
    }
    if (boxes.empty()) {
        figure.problem = "the store holds no ranks by layer and head";
        return {figure};
    }
    const auto by_rank = [](const RankBox& a, const RankBox& b) { return a.rank < b.rank; };
    const auto [least, most] = std::minmax_element(boxes.begin(), boxes.end(), by_rank);
    const double low = least->rank;
    const double high = most->rank;
    const auto name = [](const RankBox& box) {
        return fmt::format("{}, layer {}, head {}", box.panel, box.layer, box.head);
    };
    double sum = 0.0;
    std::int64_t blocks = 0;
    for (const auto& box : boxes) {
        sum += box.rank * static_cast<double>(box.blocks);
        blocks += box.blocks;
    }
    figure.description = fmt::format("Mean rank over {}: {:.3g}; smallest {:.3g} ({}), largest {:.3g} ({}).",
                                     counted(static_cast<std::size_t>(blocks), "block"),
                                     sum / static_cast<double>(blocks), low, name(*least), high, name(*most));

    figure.columns = {"side", "#layer", "#head", "#mean rank", "#blocks"};
    figure.csv = csv_line({"side", "layer", "head", "mean_rank", "blocks"});
    std::set<std::int64_t> heads;
    std::set<std::int64_t> layers;
    for (const auto& box : boxes) {
        heads.insert(box.head);
        layers.insert(box.layer);
        figure.rows.push_back({box.panel, std::to_string(box.layer), std::to_string(box.head),
                               fmt::format("{:.4g}", box.rank), std::to_string(box.blocks)});
        figure.csv += csv_line({box.panel, std::to_string(box.layer), std::to_string(box.head), exact(box.rank),
                                std::to_string(box.blocks)});
    }
    const auto place = [](const std::set<std::int64_t>& all, std::int64_t one) {
        return static_cast<std::size_t>(std::distance(all.begin(), all.find(one)));
    };
    const auto names = [](const std::set<std::int64_t>& all) {
        std::vector<std::string> texts;
        for (const auto one : all) texts.push_back(std::to_string(one));
        return texts;
    };
    std::vector<MapBox> map;
    for (const auto& box : boxes)
        map.push_back({box.panel, place(heads, box.head), place(layers, box.layer), box.rank});
    draw_map(figure, map, {"head", "layer", names(heads), names(layers)}, "mean rank");
    draw(figure);
    return {figure};
}

namespace {

/// The quantile of the absolute values of the finite entries.
double absolute_quantile(const arma::mat& matrix, double probability) {
    std::vector<double> sizes;
    for (const double value : matrix)
        if (std::isfinite(value)) sizes.push_back(std::abs(value));
    if (sizes.empty()) return 1.0;
    const auto rank = static_cast<std::ptrdiff_t>(probability * static_cast<double>(sizes.size() - 1));
    std::nth_element(sizes.begin(), sizes.begin() + rank, sizes.end());
    return sizes[static_cast<std::size_t>(rank)];
}

/// A block, its signal or its residual, in full and as shown.
struct Part {
    std::string name;
    arma::mat whole;
    arma::mat shown;
};

/// Heatmaps of a block and of the signal and residual of a method, on one colour scale.
Figure heatmaps(const std::string& label, std::int64_t rep, const std::string& method, const std::vector<Part>& parts) {
    Figure figure;
    figure.title = fmt::format("{}: block {}{}", label, rep, parts.size() > 1 ? ", signal and residual" : "");
    const arma::mat& block = parts.front().whole;
    const arma::mat& shown = parts.front().shown;
    const double limit = absolute_quantile(block, 0.99);
    const bool averaged = shown.n_rows < block.n_rows || shown.n_cols < block.n_cols;
    figure.description = fmt::format(
        "{} rows (tokens) down, {} channels across{}, in the units of the dump. All panels have one colour scale, "
        "which ends at {:.3g}: 99 % of the block's entries do not exceed it in absolute value, larger ones have the "
        "last colours.",
        block.n_rows, block.n_cols,
        averaged ? fmt::format(", drawn as means over rectangles, {} x {}", shown.n_rows, shown.n_cols) : "", limit);
    const double energy = arma::accu(arma::square(block));
    figure.columns = {"part", "#smallest", "#largest", "#root mean square", "#fraction of the block's energy, %"};
    for (const auto& part : parts) {
        const double own = arma::accu(arma::square(part.whole));
        figure.rows.push_back({part.name, fmt::format("{:.4g}", part.whole.min()),
                               fmt::format("{:.4g}", part.whole.max()),
                               fmt::format("{:.4g}", std::sqrt(own / static_cast<double>(part.whole.n_elem))),
                               energy > 0.0 ? fmt::format("{:.3g}", 100.0 * own / energy) : ""});
        if (part.name == "signal")
            figure.description +=
                own > 0.0
                    ? fmt::format(" Signal and residual by {}: {:.3g} % of the block's energy is in the signal.",
                                  method, 100.0 * own / energy)
                    : fmt::format(" {} kept no component (rank 0): the signal is zero, the residual is the block.",
                                  method);
    }
    std::vector<std::string> names = {"row", "channel"};
    std::string data;
    std::vector<Panel> panels;
    for (const auto& part : parts) {
        names.push_back(part.name);
        data += fmt::format("${} << END\n", part.name);
        for (arma::uword row = 0; row < part.shown.n_rows; ++row)
            for (arma::uword column = 0; column < part.shown.n_cols; ++column)
                data += fmt::format("{:.5g}{}", part.shown(row, column), column + 1 < part.shown.n_cols ? ' ' : '\n');
        data += "END\n";
        const double down = static_cast<double>(block.n_rows) / static_cast<double>(shown.n_rows);
        const double across = static_cast<double>(block.n_cols) / static_cast<double>(shown.n_cols);
        panels.push_back(
            {part.name,
             fmt::format("set xrange [-0.5:{}.5]\nset yrange [{}.5:-0.5]\n", block.n_cols - 1, block.n_rows - 1),
             {fmt::format("${} matrix using ({:.8g} * ($1 + 0.5) - 0.5):({:.8g} * ($2 + 0.5) - 0.5):3 with image",
                          part.name, across, down)}});
    }
    figure.csv = csv_line(names);
    for (arma::uword row = 0; row < shown.n_rows; ++row)
        for (arma::uword column = 0; column < shown.n_cols; ++column) {
            std::vector<std::string> fields = {std::to_string(row), std::to_string(column)};
            for (const auto& part : parts) fields.push_back(exact(part.shown(row, column)));
            figure.csv += csv_line(fields);
        }
    std::string palette;
    for (const double at : {-1.0, -0.5, 0.0, 0.5, 1.0}) {  // the anchors of diverging_color
        const Color color = diverging_color(at);
        palette += fmt::format("{}{} '#{:02x}{:02x}{:02x}'", palette.empty() ? "" : ", ", at, color.red, color.green,
                               color.blue);
    }
    PanelLayout layout;
    layout.columns = static_cast<int>(parts.size());
    layout.scale = ColorScale{diverging_color, -1.0, -limit, limit, "entry"};
    figure.script =
        panel_script(figure.title, data,
                     fmt::format("unset grid\nset border 0\nset tics scale 0.4\nset palette defined ({})\nset cbrange "
                                 "[{:.8g}:{:.8g}]\nunset colorbox\nset xlabel 'channel'\nset ylabel 'row'\n",
                                 palette, -limit, limit),
                     panels, {}, layout);
    draw(figure);
    return figure;
}

/// The spectrum of a block, and its heatmaps where the store has them.
std::vector<Figure> head_picture(Database& store, std::int64_t cell, std::int64_t rep, const std::string& label,
                                 const std::string& method) {
    const std::string title = fmt::format("{}: spectrum of block {}", label, rep);
    const auto values = stored_array(store, cell, rep, method, "singular_values");
    const auto edge = stored_array(store, cell, rep, method, "bulk_edge");
    const auto noise = stored_array(store, cell, rep, method, "noise_eigenvalues");
    if (!values || values->is_empty()) return {without_data(title, "the store holds no singular_values of this block")};
    const auto numbers = [](const std::optional<arma::mat>& array) {
        return array ? std::vector<double>(array->begin(), array->end()) : std::vector<double>();
    };
    Statement size(store, "SELECT max(n, d) FROM cell WHERE cell_id = ?1");
    size.bind(1, cell);
    (void)size.step();
    std::vector<Figure> figures = {spectrum_figure(
        title, validation::fit_spectrum(
                   numbers(values), edge && !edge->is_empty() ? std::optional(Eigenvalue{(*edge)(0)}) : std::nullopt,
                   numbers(noise), static_cast<std::size_t>(size.integer(0))))};
    draw(figures.front());
    std::string used;
    std::vector<Part> parts;
    for (const char* name : {"block", "signal", "residual"})
        if (const auto part =
                stored_array(store, cell, rep, method, name, std::string_view(name) == "signal" ? &used : nullptr))
            parts.push_back({name, *part, downsampled(*part, largest_image)});
    if (!parts.empty() && parts.front().name == "block" && !parts.front().whole.is_empty())
        figures.push_back(heatmaps(label, rep, used, parts));
    return figures;
}

}  // namespace

std::vector<Figure> head_pictures(Database& store, const Json& spec) {
    const std::string method = text_of(spec, "method");
    struct Chosen {
        std::int64_t cell;
        std::int64_t rep;
        std::string label;
    };
    std::vector<Chosen> chosen;
    const auto matches = [&](std::int64_t cell) {
        for (const char* name : {"file", "model", "side", "layer", "head"}) {
            const Json* wanted = spec.find(name);
            if (wanted == nullptr) continue;
            Statement query(store, "SELECT txt, num FROM factor WHERE cell_id = ?1 AND name = ?2");
            query.bind(1, cell).bind(2, name);
            if (!query.step()) return false;
            if (wanted->string() != nullptr && *wanted->string() != query.text(0)) return false;
            if (wanted->integer() != nullptr && static_cast<double>(*wanted->integer()) != query.real(1)) return false;
        }
        return true;
    };
    Statement query(store,
                    "SELECT DISTINCT a.cell_id, a.rep, c.label FROM array a JOIN cell c USING(cell_id) WHERE a.name = "
                    "'singular_values' ORDER BY a.cell_id, a.rep");
    std::size_t left_out = 0;
    while (query.step()) {
        if (!matches(query.integer(0))) continue;
        if (chosen.size() < most_pictures)
            chosen.push_back({query.integer(0), query.integer(1), query.text(2)});
        else
            ++left_out;
    }
    std::vector<Figure> figures;
    for (const auto& head : chosen)
        for (auto& figure : head_picture(store, head.cell, head.rep, head.label, method))
            figures.push_back(std::move(figure));
    if (figures.empty()) {
        Figure none;
        none.title = "Picture of a head";
        none.problem = "the store holds no arrays of such a block";
        return {none};
    }
    if (left_out > 0)
        figures.back().problem =
            fmt::format("{} more blocks with arrays are not shown; choose one by side, layer and head", left_out);
    return figures;
}

}  // namespace spiked::reports
