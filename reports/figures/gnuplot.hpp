#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/figures/color_scale.hpp"

namespace spiked::reports {

/// A text for a script: in single quotes, where gnuplot expands nothing; control characters and what is no UTF-8 become
/// spaces.
[[nodiscard]] std::string quoted(std::string_view text);

/// Runs `gnuplot` on the script, with its own defaults and none of the user's, and returns what it draws. Nothing when
/// there is no gnuplot. Throws bug when gnuplot refuses the script, write_error when it was built without the format.
/// Cost: a process of about 20 ms.
[[nodiscard]] std::optional<std::string> run_gnuplot(const std::string& script);

enum class PictureFormat { svg, png, pdf };
/// What the extension says, in either case. Throws usage_error for another.
[[nodiscard]] PictureFormat picture_format(const std::string& path);

/// The script of panel_script for a file of its own: that format on white, PNG at two pixels for one.
[[nodiscard]] std::string picture_script(const std::string& script, PictureFormat format);

/// Okabe-Ito colours with a point shape each, so that neither is needed to tell two series apart.
struct SeriesStyle {
    std::string color;
    int point;
};
[[nodiscard]] SeriesStyle series_style(std::size_t index);

struct LegendEntry {
    std::string label;
    std::string style;  ///< `points pt 6 lc rgb '...'`
};

/// One set of axes: `settings` are lines of script, `plots` the parts of one plot command, `legend` what stands under
/// the title of this panel alone.
struct Panel {
    std::string title;
    std::string settings;
    std::vector<std::string> plots;
    std::vector<LegendEntry> legend = {};
};

/// Lines of at most so many letters, broken behind commas and colons; a part that is longer stands alone.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t letters);
/// Lines as one string of a script, in single quotes, where gnuplot reads nothing but text.
[[nodiscard]] std::string lines_quoted(const std::vector<std::string>& lines);

/// A colour scale to the right of all panels, `low` below; `low` = `high`: a single value, in the colour of `low`.
struct ColorScale {
    Color (*color)(double) = sequential_color;
    double lowest = 0.0;  ///< what `color` takes at `low`; 1 at `high`
    double low = 0.0;
    double high = 1.0;
    std::string unit;
};

struct PanelLayout {
    std::string_view heading = {};  ///< a line drawn on top
    int columns = 0;                ///< 0: as many as look well
    int left = 90;                  ///< pixels for the names along the y axis
    int more_bottom = 0;            ///< pixels for names of more than one line along the x axis
    std::optional<ColorScale> scale = {};
};

/// A script that draws the panels in a grid under one legend as SVG of a size that follows from them.
/// `data` holds the data blocks the plots read, `settings` what all panels share.
[[nodiscard]] std::string panel_script(std::string_view title, const std::string& data, const std::string& settings,
                                       const std::vector<Panel>& panels, const std::vector<LegendEntry>& legend,
                                       const PanelLayout& layout = {});

}  // namespace spiked::reports
