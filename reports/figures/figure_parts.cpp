#include "reports/figures/figure_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "validation/store/open_store.hpp"

namespace spiked::reports {
namespace {

bool any_finite(const std::vector<Point>& points, double Point::*field) {
    return std::any_of(points.begin(), points.end(), [&](const Point& p) { return std::isfinite(p.*field); });
}

/// Adds the plots of a series: theory, error bars, points.
void add_plots(Panel& panel, std::size_t block, const Series& series, bool joined, bool log_y) {
    const auto style = series_style(series.style);
    if (any_finite(series.points, &Point::theory))
        panel.plots.push_back(fmt::format("$s{} using 1:4 with lines lw 1.5 dt 2 lc rgb '{}'", block, style.color));
    if (any_finite(series.points, &Point::error))
        panel.plots.push_back(
            error_bars(fmt::format("$s{}", block), fmt::format("lw 1.2 lc rgb '{}'", style.color), log_y));
    if (joined) panel.plots.push_back(fmt::format("$s{} using 1:2 with lines lw 1.2 lc rgb '{}'", block, style.color));
    panel.plots.push_back(
        fmt::format("$s{} using 1:2 with points pt {} ps 1.15 lc rgb '{}'", block, style.point, style.color));
}

std::size_t longest(const std::vector<std::string>& names) {
    std::size_t characters = 0;
    for (const auto& name : names) characters = std::max(characters, name.size());
    return characters;
}

constexpr std::size_t character_width = 7;  // approximate, in pixels

/// The names of the columns, wrapped into lines. `lines` is empty where a name does not fit into its column.
struct ColumnNames {
    std::size_t width = 0;  ///< pixels of all columns
    std::vector<std::vector<std::string>> lines = {};
    std::size_t most_lines = 1;
};

ColumnNames column_names(const std::vector<std::string>& columns, int width) {
    ColumnNames names{static_cast<std::size_t>(width)};
    const std::size_t room = names.width / (character_width * columns.size());
    for (const auto& column : columns) {
        names.lines.push_back(wrapped(column, room));
        if (longest(names.lines.back()) > room) return {names.width};
        names.most_lines = std::max(names.most_lines, names.lines.back().size());
    }
    return names;
}

/// Makes room for the names of a map. When the names of the columns need wider panels, the panels are placed below each
/// other.
ColumnNames lay_out_names(const MapAxes& axes, std::size_t panels, PanelLayout& layout) {
    constexpr int widest = 660;
    const int usual = panels == 1 ? widest : panels == 2 || panels == 4 ? 480 : 330;
    layout.left = std::max(layout.left, 66 + static_cast<int>(character_width * longest(axes.rows)));
    ColumnNames names = column_names(axes.columns, usual - layout.left);
    if (names.lines.empty() && panels <= 4) {
        ColumnNames wide = column_names(axes.columns, widest - layout.left);
        if (!wide.lines.empty()) {
            layout.columns = 1;
            names = std::move(wide);
        }
    }
    layout.more_bottom = 20 * static_cast<int>(names.most_lines - 1);
    return names;
}

/// Tics at the names, or at every second, third ... name where there are more than `most`.
template <typename Name, typename Quote>
std::string name_tics(const std::vector<Name>& names, Quote quote, std::size_t most) {
    const std::size_t step = (names.size() + most - 1) / most;
    std::vector<std::string> tics;
    for (std::size_t i = 0; i < names.size(); i += step) tics.push_back(fmt::format("{} {}", quote(names[i]), i));
    return fmt::format("({})", fmt::join(tics, ", "));
}

/// The data from which the panels of a map are drawn.
struct MapDrawing {
    const std::vector<MapBox>& boxes;
    const MapAxes& axes;
    ColorScale scale;
    std::optional<int> places;  ///< decimal places of the numbers in boxes; none where they do not fit
    bool as_image;
};

ColorScale map_scale(const std::vector<MapBox>& boxes, const std::string& unit, Range range) {
    for (const auto& box : boxes) range.take(box.value);
    return {sequential_color, 0.0, range.low, range.high, unit};
}

/// The decimal places of the numbers in boxes: no more than needed, at most two, and as many as fit into a box.
std::optional<int> places_that_fit(const std::vector<MapBox>& boxes, const ColorScale& scale, std::size_t columns,
                                   std::size_t width) {
    constexpr std::size_t most_labelled = 400;
    if (boxes.size() > most_labelled) return std::nullopt;
    const int most = std::max(std::abs(scale.low), std::abs(scale.high)) < 100.0 ? 2 : 1;
    int places = 0;
    for (const auto& box : boxes)
        while (places < most &&
               std::abs(box.value * std::pow(10.0, places) - std::round(box.value * std::pow(10.0, places))) > 1e-6)
            ++places;
    for (; places >= 0; --places)
        if (columns * 8 * (static_cast<std::size_t>(places) + 3) <= width) return places;
    return std::nullopt;
}

/// The data block `$p0`, `$p1` ... of a panel. After column and row, an image has red, green, blue and opacity; a box
/// has its colour, the colour of its number, and the number.
std::string map_block(const MapDrawing& map, std::size_t number, const std::string& panel) {
    const std::size_t columns = map.axes.columns.size();
    const double low = map.scale.low;
    const double high = map.scale.high;
    std::vector<const MapBox*> grid(columns * map.axes.rows.size(), nullptr);
    for (const auto& box : map.boxes)
        if (box.panel == panel) grid[box.row * columns + box.column] = &box;
    std::string block = fmt::format("$p{} << END\n", number);
    for (std::size_t i = 0; i < grid.size(); ++i) {
        const std::size_t column = i % columns;
        const std::size_t row = i / columns;
        if (grid[i] == nullptr) {
            if (map.as_image) block += fmt::format("{} {} 0 0 0 0\n", column, row);
            continue;
        }
        const double fraction = high > low ? (grid[i]->value - low) / (high - low) : 0.0;
        const Color color = sequential_color(fraction);
        if (map.as_image)
            block += fmt::format("{} {} {} {} {} 255\n", column, row, color.red, color.green, color.blue);
        else
            block += fmt::format(
                "{} {} {} {} {:.{}f}\n", column, row,
                std::uint32_t{color.red} << 16 | std::uint32_t{color.green} << 8 | std::uint32_t{color.blue},
                fraction < 0.55 ? 0x111111 : 0xFFFFFF, grid[i]->value, map.places.value_or(0));
    }
    return block + "END\n";
}

Panel map_panel(const MapDrawing& map, std::size_t number, const std::string& title, const std::string& tics) {
    Panel panel;
    panel.title = title;
    panel.settings = fmt::format("set xrange [-0.5:{}.5]\nset yrange [{}.5:-0.5]\n{}", map.axes.columns.size() - 1,
                                 map.axes.rows.size() - 1, tics);
    if (map.as_image)
        panel.plots.push_back(fmt::format("$p{} using 1:2:3:4:5:6 with rgbalpha", number));
    else
        panel.plots.push_back(
            fmt::format("$p{} using 1:2:(0.49):(0.49):3 with boxxyerror fill solid noborder lc rgb variable", number));
    if (map.places) panel.plots.push_back(fmt::format("$p{} using 1:2:5:4 with labels textcolor rgb variable", number));
    return panel;
}

}  // namespace

std::vector<std::string> texts_of(const Json& spec, std::string_view key, std::vector<std::string> fallback) {
    const Json* value = spec.find(key);
    if (value == nullptr) return fallback;
    if (value->string() != nullptr) return {*value->string()};
    std::vector<std::string> texts;
    if (value->items() != nullptr)
        for (const auto& item : *value->items())
            if (item.string() != nullptr) texts.push_back(*item.string());
    return texts.empty() ? fallback : texts;
}

std::optional<arma::mat> stored_array(validation::Database& store, std::int64_t cell, std::int64_t rep,
                                      const std::string& method, const std::string& name, std::string* used) {
    validation::Statement query(
        store,
        "SELECT npy, m.name FROM array JOIN method m USING(method_id) WHERE cell_id = ?1 AND rep = ?2 AND array.name = "
        "?3 ORDER BY m.name <> ?4 AND m.base <> ?4, m.kind <> 'sample', method_id LIMIT 1");
    query.bind(1, cell).bind(2, rep).bind(3, name).bind(4, method);
    if (!query.step()) return std::nullopt;
    if (used != nullptr) *used = query.text(1);
    return validation::stored_matrix(query, 0, fmt::format("{}: array {} of cell {}", store.path(), name, cell));
}

std::vector<std::string> varying_factors(const std::vector<CellRow>& cells) {
    std::map<std::string, std::set<std::string>> values;
    for (const auto& cell : cells)
        for (const auto& [name, value] : cell.factors) values[name].insert(value.text);
    std::vector<std::string> names;
    for (const auto& [name, texts] : values)
        if (texts.size() > 1) names.push_back(name);
    return names;
}

std::map<std::int64_t, std::string> panels_of(const std::vector<CellRow>& cells, const std::vector<std::string>& axes,
                                              bool alone) {
    const auto varying = varying_factors(cells);
    const auto known = [&](const char* name) {
        return std::find(varying.begin(), varying.end(), name) != varying.end() ||
               std::find(axes.begin(), axes.end(), name) != axes.end();
    };
    std::set<std::pair<std::int64_t, std::int64_t>> sizes;
    for (const auto& cell : cells) sizes.insert({cell.n, cell.d});
    std::map<std::int64_t, std::string> panel;
    std::map<std::string, std::size_t> members;
    for (const auto& cell : cells) {
        std::vector<std::string> parts;
        if (sizes.size() > 1 && !known("n") && !known("d")) parts.push_back(fmt::format("{} x {}", cell.n, cell.d));
        for (const auto& name : varying) {
            const auto found = cell.factors.find(name);
            if (std::find(axes.begin(), axes.end(), name) == axes.end() && found != cell.factors.end())
                parts.push_back(short_factor(name) + " = " + short_numbers(found->second.text));
        }
        std::string name = fmt::format("{}", fmt::join(parts, ", "));
        ++members[name];
        panel[cell.id] = std::move(name);
    }
    // When every panel would have a single cell, one panel is better, unless two cells would coincide on the axes.
    std::set<std::vector<std::string>> positions;
    for (const auto& cell : cells) {
        std::vector<std::string> position;
        for (const auto& axis : axes) {
            const auto found = cell.factors.find(axis);
            position.push_back(found == cell.factors.end() ? "" : found->second.text);
        }
        positions.insert(std::move(position));
    }
    if (!alone && members.size() == cells.size() && positions.size() == cells.size() && cells.size() > 1)
        for (auto& [id, name] : panel) name.clear();
    return panel;
}

std::string error_bars(const std::string& block, const std::string& style, bool log_y) {
    const char* ends =
        log_y ? "($3 < $2 ? $2 - $3 : 1e-4 * $2):(0):($3 < $2 ? 2 * $3 : $3 + 0.9999 * $2)" : "($2 - $3):(0):(2 * $3)";
    return fmt::format("{} using 1:{} with vectors heads size screen 0.004,90 {}", block, ends, style);
}

Series* PanelSeries::find(const std::string& panel, const std::string& label, std::optional<std::size_t> style) {
    if (!panels.contains(panel)) {
        if (panels.size() >= most_panels) {
            ++left_out;
            return nullptr;
        }
    }
    if (!styles.contains(label) && styles.size() >= most_labels) {
        ++left_out;
        return nullptr;
    }
    if (!panels.contains(panel)) order.push_back(panel);
    Series& series = panels[panel][label];
    series.style = styles.emplace(label, style.value_or(styles.size())).first->second;
    return &series;
}

std::string data_block(std::size_t number, const std::vector<Point>& points) {
    const auto field = [](double value) {
        return std::isnan(value) ? std::string("NaN") : fmt::format("{:.8g}", value);
    };
    std::string block = fmt::format("$s{} << END\n", number);
    for (const auto& point : points)
        block += fmt::format("{} {} {} {}\n", field(point.x), field(point.y), field(point.error), field(point.theory));
    return block + "END\n";
}

DrawnPanels draw_panels(PanelSeries& all, bool joined, bool log_y) {
    DrawnPanels drawn;
    std::size_t block = 0;
    for (const auto& name : all.order) {
        Panel panel;
        panel.title = name;
        for (auto& [label, series] : all.panels.at(name)) {
            std::stable_sort(series.points.begin(), series.points.end(),
                             [](const Point& a, const Point& b) { return a.x < b.x; });
            drawn.data += data_block(block, series.points);
            add_plots(panel, block, series, joined, log_y);
            ++block;
        }
        drawn.panels.push_back(std::move(panel));
    }
    return drawn;
}

std::map<std::string, std::size_t> method_styles(validation::Database& store) {
    validation::Statement query(store,
                                "SELECT base FROM method WHERE kind <> 'sample' GROUP BY base ORDER BY "
                                "min(method_id)");
    std::map<std::string, std::size_t> styles;
    while (query.step()) styles.emplace(query.text(0), styles.size());
    return styles;
}

std::vector<LegendEntry> legend_of(const std::map<std::string, std::size_t>& styles, bool theory, bool joined) {
    std::map<std::size_t, std::string> labels;
    for (const auto& [label, index] : styles) labels[index] = label;
    std::vector<LegendEntry> legend;
    for (const auto& [index, label] : labels) {
        const auto style = series_style(index);
        legend.push_back({label, fmt::format("{} pt {} ps 1.15 lc rgb '{}'", joined ? "linespoints" : "points",
                                             style.point, style.color)});
    }
    if (theory) legend.push_back({"theory", "lines lw 1.5 dt 2 lc black"});
    return legend;
}

void Range::take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
}

std::string Range::text(double margin) const {
    const double room = high > low ? margin * (high - low) : std::max(0.5, 0.05 * std::abs(high));
    return fmt::format("[{:.8g}:{:.8g}]", low - room, high + room);
}

std::string Range::log_tics(char axis) const {
    if (!(low > 0.0) || !(high < 100.0 * low) || !std::isfinite(1.3 * high)) return "";
    std::vector<std::string> tics;
    for (int power = static_cast<int>(std::floor(std::log10(low))) - 1; std::pow(10.0, power) <= high * 1.3; ++power)
        for (const double digit : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0}) {
            if (high > 12.0 * low && (digit == 1.5 || digit == 3.0 || digit == 7.0)) continue;
            if (const double tic = digit * std::pow(10.0, power); tic >= low / 1.3 && tic <= high * 1.3)
                tics.push_back(fmt::format("{:.8g}", tic));
        }
    return fmt::format("set {}tics nomirror ({})\n", axis, fmt::join(tics, ", "));
}

std::string Range::log_text() const {
    return low > 0.0 ? fmt::format("[{:.4g}:{:.4g}]", low / log_room, high * log_room) : std::string("[*:*]");
}

Figure without_data(std::string title, std::string problem) {
    Figure figure;
    figure.title = std::move(title);
    figure.problem = std::move(problem);
    return figure;
}

void draw_map(Figure& figure, const std::vector<MapBox>& boxes, const MapAxes& axes, const std::string& unit,
              const Range& shown) {
    std::vector<std::string> order;
    for (const auto& box : boxes)
        if (std::find(order.begin(), order.end(), box.panel) == order.end()) order.push_back(box.panel);
    PanelLayout layout;
    const ColumnNames names = lay_out_names(axes, order.size(), layout);
    // All names wrapped into lines where they fit, else every second, third ... name.
    const std::size_t most_names = names.width / (character_width * (longest(axes.columns) + 1));
    const std::string x_tics = names.lines.empty()
                                   ? name_tics(axes.columns, gnuplot_quoted, std::max<std::size_t>(1, most_names))
                                   : name_tics(names.lines, lines_quoted, names.lines.size());
    const std::string tics =
        fmt::format("set xtics nomirror {}\nset ytics nomirror {}\n", x_tics, name_tics(axes.rows, gnuplot_quoted, 16));
    const ColorScale scale = map_scale(boxes, unit, shown);
    const bool as_image = boxes.size() > 2000;  // separate shapes would take megabytes
    const MapDrawing map{boxes, axes, scale, places_that_fit(boxes, scale, axes.columns.size(), names.width), as_image};
    std::string data;
    std::vector<Panel> panels;
    for (std::size_t p = 0; p < order.size(); ++p) {
        data += map_block(map, p, order[p]);
        panels.push_back(map_panel(map, p, order[p], tics));
    }
    layout.scale = scale;
    figure.script =
        panel_script(figure.title, data,
                     fmt::format("unset grid\nset border 0\nset tics scale 0\nset xlabel {} noenhanced offset 0,-{}\n"
                                 "set ylabel {} noenhanced\n",
                                 gnuplot_quoted(axes.x), names.most_lines - 1, gnuplot_quoted(axes.y)),
                     panels, {}, layout);
}

}  // namespace spiked::reports
