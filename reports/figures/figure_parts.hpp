#pragma once
#include <armadillo>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/figures/figures.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/store_queries.hpp"

// What several makers of figures share.
namespace spiked::reports {

constexpr std::size_t most_panels = 12;
constexpr std::size_t most_labels = 100;   ///< of a figure; gnuplot compares each of its curves with all before
constexpr std::size_t most_points = 1000;  // keeps a page small; the table view and the export have them all

/// A list of texts in the JSON of [[figure]], a single text, or the fallback.
[[nodiscard]] std::vector<std::string> texts_of(const Json& spec, std::string_view key,
                                                std::vector<std::string> fallback);
/// An array of a cell, from the method asked for or else the first that has it; `used`: which that is.
[[nodiscard]] std::optional<arma::mat> stored_array(validation::Database& store, std::int64_t cell, std::int64_t rep,
                                                    const std::string& method, const std::string& name,
                                                    std::string* used = nullptr);
/// Names of factors that take more than one value, in the order of names.
[[nodiscard]] std::vector<std::string> varying_factors(const std::vector<CellRow>& cells);
/// Panels of all cells: what their varying factors but those of the axes say, and their size where no factor says it. A
/// factor that goes along with the axes point by point does not split the panel, unless a cell is a curve of its own:
/// `alone`.
[[nodiscard]] std::map<std::int64_t, std::string> panels_of(const std::vector<CellRow>& cells,
                                                            const std::vector<std::string>& axes, bool alone = false);

struct Point {
    double x = std::numeric_limits<double>::quiet_NaN();
    double y = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();
    double theory = std::numeric_limits<double>::quiet_NaN();
};

/// Points of one series in one panel.
struct Series {
    std::size_t style = 0;
    std::vector<Point> points;
};

/// Series of all panels in the order they came. What would need more than most_panels or most_labels is counted
/// and left out.
struct PanelSeries {
    std::vector<std::string> order;
    std::map<std::string, std::map<std::string, Series>> panels;  ///< by label in each
    std::map<std::string, std::size_t> styles;                    ///< of each label
    std::size_t left_out = 0;

    /// The one to add points to, of the next style where none is given; null where it is left out.
    Series* find(const std::string& panel, const std::string& label, std::optional<std::size_t> style = {});
};

/// The data block `$s0`, `$s1` ... with columns x, y, error, theory; a missing number is NaN.
[[nodiscard]] std::string data_block(std::size_t number, const std::vector<Point>& points);

/// A plot of bars from y - error to y + error; on a logarithmic axis a bar that reaches zero goes down to the frame.
/// gnuplot's own error bars leave a gap in the middle where points are large.
[[nodiscard]] std::string error_bars(const std::string& block, const std::string& style, bool log_y = false);

/// The style of each method by its name without bits: the same in every figure of a store.
[[nodiscard]] std::map<std::string, std::size_t> method_styles(validation::Database& store);

struct DrawnPanels {
    std::string data;
    std::vector<Panel> panels;
};
/// Data blocks and plots of every panel, points in the order of x: error bars, points, theory as a dashed line.
[[nodiscard]] DrawnPanels draw_panels(PanelSeries& all, bool joined, bool log_y = false);
/// A line of the legend for every label by its style, one for theory.
[[nodiscard]] std::vector<LegendEntry> legend_of(const std::map<std::string, std::size_t>& styles, bool theory,
                                                 bool joined);

/// What an axis has to show.
struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    void take(double value);
    /// With room at both ends, so that no point lies on the frame.
    [[nodiscard]] std::string text(double share) const;
    /// Tics of a short logarithmic axis; gnuplot itself writes those of the powers of ten alone.
    [[nodiscard]] std::string log_tics(char axis = 'y') const;
    static constexpr double log_room = 1.3;
    [[nodiscard]] std::string log_text() const;
};

/// A figure that has nothing to show, and why.
[[nodiscard]] Figure without_data(std::string title, std::string problem);

/// A rectangle of a map, by column and row from 0.
struct MapBox {
    std::string panel;
    std::size_t column = 0;
    std::size_t row = 0;
    double value = 0.0;
};
/// What a map calls its axes, and the names along them.
struct MapAxes {
    std::string x;
    std::string y;
    std::vector<std::string> columns;
    std::vector<std::string> rows;
};
/// Gives a figure the script and the colour scale of boxes in panels, numbers written in while there is room.
void draw_map(Figure& figure, const std::vector<MapBox>& boxes, const MapAxes& axes, const std::string& unit);

}  // namespace spiked::reports
