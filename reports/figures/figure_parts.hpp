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

// Helpers for the functions that make figures: panels, points with error bars, axes, maps.
namespace spiked::reports {

constexpr std::size_t most_panels = 12;
constexpr std::size_t most_labels =
    100;  ///< per figure, because gnuplot's time grows with the square of the number of curves
constexpr std::size_t most_points = 1000;  ///< per figure, to keep a page small; table and export contain all of them

/// The list of texts, or the single text, at `key` in the JSON of [[figure]]; the fallback where there is none.
[[nodiscard]] std::vector<std::string> texts_of(const Json& spec, std::string_view key,
                                                std::vector<std::string> fallback);
/// An array of a cell from `method`, or else from the first method that has it; `used` receives the name of the method.
[[nodiscard]] std::optional<arma::mat> stored_array(validation::Database& store, std::int64_t cell, std::int64_t rep,
                                                    const std::string& method, const std::string& name,
                                                    std::string* used = nullptr);
/// The factors that take more than one value, in alphabetical order.
[[nodiscard]] std::vector<std::string> varying_factors(const std::vector<CellRow>& cells);
/// The panel titles of all cells: the values of the varying factors that are not on an axis, and the size where it is
/// not a factor. Where this would give every cell a panel of its own although the axes separate all cells, there is one
/// panel, unless each cell is a curve of its own (`alone`).
[[nodiscard]] std::map<std::int64_t, std::string> panels_of(const std::vector<CellRow>& cells,
                                                            const std::vector<std::string>& axes, bool alone = false);

struct Point {
    double x = std::numeric_limits<double>::quiet_NaN();
    double y = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();
    double theory = std::numeric_limits<double>::quiet_NaN();
};

/// The points of one series in one panel.
struct Series {
    std::size_t style = 0;
    std::vector<Point> points;
};

/// The series of all panels in order of appearance. Points that would need more than most_panels panels or most_labels
/// labels are counted and left out.
struct PanelSeries {
    std::vector<std::string> order;
    std::map<std::string, std::map<std::string, Series>> panels;  ///< by title, then by label
    std::map<std::string, std::size_t> styles;                    ///< by label
    std::size_t left_out = 0;

    /// The series to add points to, with the next style where none is given. Null where it is left out.
    Series* find(const std::string& panel, const std::string& label, std::optional<std::size_t> style = {});
};

/// gnuplot's data block `$s0`, `$s1` ... with the columns x, y, error and theory; a missing number is NaN.
[[nodiscard]] std::string data_block(std::size_t number, const std::vector<Point>& points);

/// A plot of error bars from y - error to y + error. On a logarithmic axis a bar that reaches zero ends at the frame.
/// gnuplot's own error bars are not used, because they leave a gap around large points.
[[nodiscard]] std::string error_bars(const std::string& block, const std::string& style, bool log_y = false);

/// The style of each method, by its name without bits, which is the same in every figure of a store.
[[nodiscard]] std::map<std::string, std::size_t> method_styles(validation::Database& store);

struct DrawnPanels {
    std::string data;
    std::vector<Panel> panels;
};
/// Data blocks and plots of every panel, with points sorted by x: error bars, points, and theory as a dashed line.
[[nodiscard]] DrawnPanels draw_panels(PanelSeries& all, bool joined, bool log_y = false);
/// Entries of the legend for every label in the order of styles, and one for theory.
[[nodiscard]] std::vector<LegendEntry> legend_of(const std::map<std::string, std::size_t>& styles, bool theory,
                                                 bool joined);

/// The range of the values on an axis.
struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    void take(double value);
    /// The range for gnuplot, widened at both ends by `margin` times its length so that no point lies on the frame.
    [[nodiscard]] std::string text(double margin) const;
    /// Tics for a logarithmic axis of less than two decades, where gnuplot would label powers of ten only; else empty.
    [[nodiscard]] std::string log_tics(char axis = 'y') const;
    static constexpr double log_room = 1.3;
    /// The range for gnuplot on a logarithmic axis, widened by the factor log_room at both ends.
    [[nodiscard]] std::string log_text() const;
};

/// A figure without a picture, with the reason.
[[nodiscard]] Figure without_data(std::string title, std::string problem);

/// A box of a map, by panel and by column and row counted from 0.
struct MapBox {
    std::string panel;
    std::size_t column = 0;
    std::size_t row = 0;
    double value = 0.0;
};
/// The labels of the axes of a map, and the names along them.
struct MapAxes {
    std::string x;
    std::string y;
    std::vector<std::string> columns;
    std::vector<std::string> rows;
};
/// Sets the script of a figure to a map with a colour scale over `shown` and all values. The numbers are written into
/// the boxes where they fit.
void draw_map(Figure& figure, const std::vector<MapBox>& boxes, const MapAxes& axes, const std::string& unit,
              const Range& shown = {});

}  // namespace spiked::reports
