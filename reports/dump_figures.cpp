// Figures of a dump study: ranks by layer and head, and the paper's picture of one head.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "reports/figures.hpp"
#include "reports/gnuplot.hpp"
#include "reports/png.hpp"
#include "reports/text_table.hpp"
#include "sim/npy.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t most_pictures = 8;    // about 90 kB each
constexpr std::size_t most_labelled = 400;  // boxes of a rank map with their number written in
constexpr std::size_t largest_image = 192;  // pixels a side; larger blocks are averaged
constexpr std::size_t most_singular_values = 1024;

std::uint32_t packed(Color color) {
    return std::uint32_t{color.red} << 16 | std::uint32_t{color.green} << 8 | color.blue;
}

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
    std::vector<std::string> order;
    while (query.step()) {
        RankBox box{query.integer(0) != 0 ? query.text(2) + "s, " + query.text(1) : query.text(2) + "s",
                    query.integer(3), query.integer(4), query.real(5), query.integer(6)};
        if (order.empty() || order.back() != box.panel) order.push_back(box.panel);
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
    std::string data;
    std::vector<Panel> panels;
    for (std::size_t p = 0; p < order.size(); ++p) {
        Panel panel;
        panel.title = order[p];
        std::int64_t heads = 0;
        std::int64_t layers = 0;
        data += fmt::format("$p{} << END\n", p);
        for (const auto& box : boxes) {
            if (box.panel != order[p]) continue;
            heads = std::max(heads, box.head);
            layers = std::max(layers, box.layer);
            const double share = high > low ? (box.rank - low) / (high - low) : 0.0;
            data += fmt::format("{} {} {} {} {:.{}f}\n", box.head, box.layer, packed(sequential_color(share)),
                                share < 0.55 ? 0x111111 : 0xFFFFFF, box.rank, box.rank < 10.0 ? 1 : 0);
            figure.rows.push_back({box.panel, std::to_string(box.layer), std::to_string(box.head),
                                   fmt::format("{:.4g}", box.rank), std::to_string(box.blocks)});
            figure.csv += csv_line({box.panel, std::to_string(box.layer), std::to_string(box.head), exact(box.rank),
                                    std::to_string(box.blocks)});
        }
        data += "END\n";
        panel.settings = fmt::format(
            "set xrange [-0.5:{}.5]\nset yrange [{}.5:-0.5]\nset xtics nomirror {}\nset ytics nomirror {}\n", heads,
            layers, 1 + heads / 16, 1 + layers / 16);
        panel.plots.push_back(
            fmt::format("$p{} using 1:2:(0.49):(0.49):3 with boxxyerror fill solid noborder lc rgb variable", p));
        if (boxes.size() <= most_labelled)
            panel.plots.push_back(fmt::format("$p{} using 1:2:5:4 with labels textcolor rgb variable", p));
        panels.push_back(std::move(panel));
    }
    figure.script =
        panel_script(figure.title, data,
                     "unset grid\nset border 0\nset tics scale 0\nset xlabel 'head'\nset ylabel 'layer'\n", panels, {});
    figure.scale = {fmt::format("{:.3g}", low), fmt::format("{:.3g}", high), "mean rank",
                    scale_png(sequential_color, 0.0, 1.0)};
    draw(figure);
    return {figure};
}

namespace {

/// An array of a cell, from the method asked for or else the first that has it.
std::optional<arma::mat> stored_array(Database& store, std::int64_t cell, std::int64_t rep, const std::string& method,
                                      const std::string& name, std::string* used = nullptr) {
    Statement query(
        store,
        "SELECT npy, m.name FROM array JOIN method m USING(method_id) WHERE cell_id = ?1 AND rep = ?2 AND array.name = "
        "?3 ORDER BY m.name <> ?4 AND m.base <> ?4, m.kind <> 'sample', method_id LIMIT 1");
    query.bind(1, cell).bind(2, rep).bind(3, name).bind(4, method);
    if (!query.step()) return std::nullopt;
    const auto bytes = query.blob(0);
    if (used != nullptr) *used = query.text(1);
    const sim::ByteSource source{fmt::format("{}: array {} of cell {}", store.path(), name, cell), bytes.size(),
                                 [bytes](std::uint64_t offset, std::span<std::byte> out) {
                                     std::memcpy(out.data(), bytes.data() + offset, out.size());
                                 }};
    return sim::read_npy_matrix(source);
}

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
    Figure figure;
    figure.title = fmt::format("{}: spectrum and parts of block {}", label, rep);
    const auto values = stored_array(store, cell, rep, method, "singular_values");
    const auto edge_array = stored_array(store, cell, rep, method, "bulk_edge");
    const auto noise = stored_array(store, cell, rep, method, "noise_eigenvalues");
    if (!values) {
        figure.problem = "the store holds no singular_values of this block";
        return figure;
    }
    arma::vec singular = arma::sort(arma::vectorise(*values), "descend");
    const std::size_t count = singular.n_elem;
    const double edge =
        edge_array && edge_array->n_elem > 0 ? (*edge_array)(0) : std::numeric_limits<double>::quiet_NaN();
    const double root = std::sqrt(edge);
    const auto above =
        static_cast<std::size_t>(std::count_if(singular.begin(), singular.end(), [&](double s) { return s > root; }));

    std::string used;
    const auto signal = stored_array(store, cell, rep, method, "signal", &used);
    figure.description =
        fmt::format("{} singular values from {:.4g} down to {:.4g}.", count, singular.front(), singular.back());
    if (std::isfinite(edge))
        figure.description += fmt::format(" {} above the estimated edge {:.4g} (an eigenvalue of {:.4g}).",
                                          above == 1 ? "1 lies" : fmt::format("{} lie", above), root, edge);

    // Histogram of eigenvalues up to somewhat beyond the edge: the spikes would squeeze the bulk into one bin.
    const double high = std::isfinite(edge) && edge > 0.0 ? 1.6 * edge : 1.02 * singular.front() * singular.front();
    constexpr int bins = 40;
    const double width = high / bins;
    std::vector<double> counts(bins, 0.0);
    std::vector<double> law(bins, 0.0);
    std::size_t beyond = 0;
    std::size_t within = 0;
    for (const double s : singular) {
        const auto bin = static_cast<std::size_t>(s * s / width);
        if (bin < bins)
            counts[bin] += 1.0;
        else
            ++beyond;
        if (!(s > root)) ++within;
    }
    const double scale =
        noise && noise->n_elem > 0 ? static_cast<double>(within) / static_cast<double>(noise->n_elem) : 0.0;
    if (noise)
        for (const double value : *noise)
            if (const auto bin = static_cast<std::size_t>(std::max(0.0, value) / width); bin < bins) law[bin] += scale;

    std::string data = "$values << END\n";
    figure.columns = {"#index", "#singular value", "#eigenvalue", "above the edge", "#noise eigenvalue"};
    figure.csv = csv_line({"index", "singular_value", "eigenvalue", "above_edge", "noise_eigenvalue"});
    const arma::vec noise_values = noise ? arma::vec(arma::sort(arma::vectorise(*noise), "descend")) : arma::vec();
    for (std::size_t i = 0;
         i < std::min<std::size_t>(std::max<std::size_t>(count, noise_values.n_elem), most_singular_values); ++i) {
        const bool has = i < count;
        const double s = has ? singular(i) : std::numeric_limits<double>::quiet_NaN();
        const double law_value = i < noise_values.n_elem ? noise_values(i) : std::numeric_limits<double>::quiet_NaN();
        const auto shown = [](double value) {
            return std::isnan(value) ? std::string() : fmt::format("{:.5g}", value);
        };
        if (has) data += fmt::format("{} {:.8g} {}\n", i + 1, s, s > root ? 1 : 0);
        figure.rows.push_back(
            {std::to_string(i + 1), shown(s), shown(s * s), has && s > root ? "yes" : "", shown(law_value)});
        figure.csv += csv_line(
            {std::to_string(i + 1), exact(s), exact(s * s), has ? (s > root ? "1" : "0") : "", exact(law_value)});
    }
    data += "END\n$bins << END\n";
    for (std::size_t i = 0; i < bins; ++i)
        data += fmt::format("{:.8g} {} {:.6g}\n", (static_cast<double>(i) + 0.5) * width, counts[i], law[i]);
    data += "END\n";

    const auto mark_edge = [&](double at, bool vertical) {
        if (!std::isfinite(at)) return std::string();
        return vertical ? fmt::format(
                              "set arrow 1 from first {0:.8g}, graph 0 to first {0:.8g}, graph 1 nohead lw 1.5 dt 2 lc "
                              "rgb '#D55E00'\n",
                              at)
                        : fmt::format(
                              "set arrow 1 from graph 0, first {0:.8g} to graph 1, first {0:.8g} nohead lw 1.5 dt 2 lc "
                              "rgb '#D55E00'\n",
                              at);
    };
    // Values of repeated tokens are rounding errors, dozens of decades down: they would squeeze all others into a line.
    const double floor = 1e-4 * singular.front();
    Panel spectrum;
    spectrum.title = singular.back() < floor ? fmt::format("singular values above {:.2g}", floor) : "singular values";
    spectrum.settings =
        fmt::format("set xlabel 'index'\nset ylabel ''\nset xrange [0:{}]\n{}{}", count + 1,
                    floor > 0.0 ? fmt::format("set format y '%g'\nset logscale y\nset yrange [{:.4g}:*]\n",
                                              std::max(floor, singular.back()))
                                : "set yrange [*:*]\n",
                    mark_edge(root, false));
    spectrum.plots = {"$values using 1:($3 == 0 ? $2 : NaN) with points pt 6 ps 0.6 lc rgb '#0072B2'",
                      "$values using 1:($3 == 1 ? $2 : NaN) with points pt 9 ps 1 lc rgb '#D55E00'"};
    if (above == 0) spectrum.plots.pop_back();
    if (above == count) spectrum.plots.erase(spectrum.plots.begin());
    Panel histogram;
    histogram.title = beyond > 0 ? fmt::format("eigenvalues; {} beyond the right end", beyond) : "eigenvalues";
    histogram.settings = fmt::format(
        "unset logscale\nset xlabel 'eigenvalue'\nset ylabel 'count'\nset xrange [0:{:.8g}]\nset yrange [0:*]\nset "
        "boxwidth {:.8g}\n{}",
        high, 0.92 * width, mark_edge(edge, true));
    histogram.plots = {"$bins using 1:2 with boxes fill solid 0.55 noborder lc rgb '#56B4E9'"};
    std::vector<LegendEntry> legend = {{"within the edge", "points pt 6 ps 0.8 lc rgb '#0072B2'"}};
    if (above > 0) legend.push_back({"above the edge", "points pt 9 ps 1 lc rgb '#D55E00'"});
    if (std::isfinite(edge)) legend.push_back({"estimated edge", "lines lw 1.5 dt 2 lc rgb '#D55E00'"});
    if (noise) {
        histogram.plots.emplace_back("$bins using 1:3 with histeps lw 1.8 lc black");
        legend.push_back({"noise law", "lines lw 1.8 lc black"});
    }
    figure.script = panel_script(figure.title, data, "", {spectrum, histogram}, legend);

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
