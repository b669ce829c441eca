#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/figures/color_scale.hpp"

namespace spiked::reports {

/// A text for a script in single quotes, in which gnuplot expands nothing. Control characters and invalid UTF-8 become
/// spaces.
[[nodiscard]] std::string gnuplot_quoted(std::string_view text);

/// Runs `gnuplot` on the script without the user's settings and returns the picture, or nothing when gnuplot is not
/// installed. Throws data_error when gnuplot rejects the script, and output_error when it was built without the format.
/// Cost: a process of about 20 ms.
[[nodiscard]] std::optional<std::string> run_gnuplot(const std::string& script);

enum class PictureFormat { svg, png, pdf };
/// The format of the extension in upper or lower case. Throws usage_error for an unknown extension.
[[nodiscard]] PictureFormat picture_format(const std::string& path);

/// A script of panel_script changed for a separate file: in this format, on white, PNG with twice the pixels.
[[nodiscard]] std::string picture_script(const std::string& script, PictureFormat format);

/// A colour of the Okabe-Ito palette and a point shape; two series can be distinguished by either of them.
struct SeriesStyle {
    std::string color;
    int point;
};
[[nodiscard]] SeriesStyle series_style(std::size_t index);

struct LegendEntry {
    std::string label;
    std::string style;  ///< `points pt 6 lc rgb '...'`
};

/// One set of axes. `settings` are lines of script, `plots` the elements of one plot command, and `legend` is shown
/// under the title of this panel only.
struct Panel {
    std::string title;
    std::string settings;
    std::vector<std::string> plots;
    std::vector<LegendEntry> legend = {};
};

/// The text in lines of at most `width` characters, broken after commas and colons. A longer part has a line of its
/// own.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);
/// Lines as one string expression of a script, in single quotes, in which gnuplot expands nothing.
[[nodiscard]] std::string lines_quoted(const std::vector<std::string>& lines);

/// A colour scale to the right of all panels, with `low` at the bottom. When `low` equals `high` it has that single
/// value, in the colour of `low`.
struct ColorScale {
    Color (*color)(double) = sequential_color;
    double lowest = 0.0;  ///< argument of `color` at `low`; at `high` it is 1
    double low = 0.0;
    double high = 1.0;
    std::string unit;
};

struct PanelLayout {
    std::string_view heading = {};  ///< title of the whole picture
    int columns = 0;                ///< 0: depends on the number of panels
    int left = 90;                  ///< pixels for the names along the y axis
    int more_bottom = 0;            ///< more pixels for names of several lines along the x axis
    std::optional<ColorScale> scale = {};
};

/// A script that draws the panels in a grid under one legend, as SVG whose size follows from them. `data` holds the
/// data blocks of the plots, `settings` the settings of all panels.
[[nodiscard]] std::string panel_script(std::string_view title, const std::string& data, const std::string& settings,
                                       const std::vector<Panel>& panels, const std::vector<LegendEntry>& legend,
                                       const PanelLayout& layout = {});

}  // namespace spiked::reports
