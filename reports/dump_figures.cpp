// Figures of a dump study: ranks by layer and head, and the paper's picture of one head.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "reports/figure_parts.hpp"
#include "reports/gnuplot.hpp"
#include "reports/png.hpp"
#include "reports/spectrum_figure.hpp"
#include "reports/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t most_pictures = 8;    // about 90 kB each
constexpr std::size_t largest_image = 192;  // pixels a side; larger blocks are averaged

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
        // The first method whose rank is not the same everywhere, else the first that has one.
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
        "layer.num, head.num, SUM(s.n * s.mean) / SUM(s.n), SUM(s.n) FROM v_summary s "
        "JOIN factor side ON side.cell_id = s.cell_id AND side.name = 'side' "
        "JOIN factor layer ON layer.cell_id = s.cell_id AND layer.name = 'layer' "
        "JOIN factor head ON head.cell_id = s.cell_id AND head.name = 'head' "
        "LEFT JOIN factor model ON model.cell_id = s.cell_id AND model.name = 'model' "
        "WHERE s.metric = 'rank' AND s.method = ?1 AND s.mean IS NOT NULL AND layer.num IS NOT NULL AND head.num IS "
        "NOT NULL GROUP BY 2, 3, 4, 5 ORDER BY 2, 3, 4, 5");
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

/// The value that a share of the entries does not exceed in size.
double size_quantile(const arma::mat& matrix, double share) {
    std::vector<double> sizes;
    for (const double value : matrix)
        if (std::isfinite(value)) sizes.push_back(std::abs(value));
    if (sizes.empty()) return 1.0;
    const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(sizes.size() - 1));
    std::nth_element(sizes.begin(), sizes.begin() + rank, sizes.end());
    return sizes[static_cast<std::size_t>(rank)];
}

Figure head_picture(Database& store, std::int64_t cell, std::int64_t rep, const std::string& label,
                    const std::string& method) {
    const std::string title = fmt::format("{}: spectrum and parts of block {}", label, rep);
    const auto values = stored_array(store, cell, rep, method, "singular_values");
    const auto edge = stored_array(store, cell, rep, method, "bulk_edge");
    const auto noise = stored_array(store, cell, rep, method, "noise_eigenvalues");
    if (!values || values->is_empty()) return without_data(title, "the store holds no singular_values of this block");
    const auto numbers = [](const std::optional<arma::mat>& array) {
        return array ? std::vector<double>(array->begin(), array->end()) : std::vector<double>();
    };
    Figure figure = spectrum_figure(title, numbers(values),
                                    edge && !edge->is_empty() ? std::optional(Eigenvalue{(*edge)(0)}) : std::nullopt,
                                    numbers(noise));
    std::string used;
    const auto signal = stored_array(store, cell, rep, method, "signal", &used);
    const auto block = stored_array(store, cell, rep, method, "block");
    const auto residual = stored_array(store, cell, rep, method, "residual");
    if (block) {
        const double limit = size_quantile(*block, 0.99);
        const std::pair<const char*, const std::optional<arma::mat>*> parts[] = {
            {"block", &block}, {"signal", &signal}, {"residual", &residual}};
        for (const auto& [name, part] : parts)
            if (*part) figure.images.push_back({name, matrix_png(shrunk_to(**part, largest_image), limit)});
        figure.scale = {fmt::format("{:.3g}", -limit), fmt::format("{:.3g}", limit), "entry",
                        scale_png(diverging_color, -1.0, 1.0)};
        figure.description += fmt::format(
            " Heatmaps: {} tokens down, {} dimensions across, one colour scale that ends at the 99 % quantile of the "
            "sizes of "
            "the block's entries{}.",
            block->n_rows, block->n_cols, signal ? "; signal and residual by " + used : "");
    }
    draw(figure);
    return figure;
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
    for (const auto& head : chosen) figures.push_back(head_picture(store, head.cell, head.rep, head.label, method));
    if (figures.empty()) {
        Figure none;
        none.title = "Picture of a head";
        none.problem = "the store holds no arrays of such a block";
        return {none};
    }
    if (left_out > 0)
        figures.back().problem =
            fmt::format("{} more blocks with arrays are not shown; name one by side, layer and head", left_out);
    return figures;
}

}  // namespace spiked::reports
