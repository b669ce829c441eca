#include "reports/figures/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/files/temporary.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "core/text/utf8.hpp"

namespace spiked::reports {
namespace {

struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, FileCloser>;

/// A temporary file without a name, in $TMPDIR; std::tmpfile() only uses /tmp.
TemporaryFile temporary_file() {
    std::string path = temporary_root() + "/spiked-figure-XXXXXX";
    const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor >= 0) ::unlink(path.c_str());
    TemporaryFile file(descriptor < 0 ? nullptr : ::fdopen(descriptor, "w+"));
    if (!file)
        throw output_error("{}: no temporary file for a figure ({}): set TMPDIR to a folder with room", path,
                           std::strerror(errno));
    return file;
}

std::string read_all(std::FILE* file) {
    std::string text;
    std::array<char, 65536> buffer;
    std::rewind(file);
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;)
        text.append(buffer.data(), got);
    return text;
}

/// Whether the picture ends as one of the formats must end.
bool is_complete(const std::string& picture) {
    const std::string_view end =
        std::string_view(picture).substr(picture.size() - std::min<std::size_t>(picture.size(), 16));
    return end.find("</svg>") != end.npos || end.find("IEND") != end.npos || end.find("%%EOF") != end.npos;
}

/// Replaces the date of a PDF by blanks, so that the same script gives the same bytes. The offsets in the file stay
/// valid.
void remove_date(std::string& picture) {
    if (!picture.starts_with("%PDF")) return;
    const std::size_t start = picture.rfind("/CreationDate (");
    if (start == std::string::npos) return;
    const std::size_t end = std::min(picture.find(')', start), picture.size() - 1);
    picture.replace(start, end + 1 - start, end + 1 - start, ' ');
}

/// Begins with the preceding line break: a title, which stands in a comment, may contain this text but no line break.
constexpr std::string_view page_terminal = "\nset terminal svg size ";

}  // namespace

std::string gnuplot_quoted(std::string_view text) {
    std::string out = "'";
    while (!text.empty()) {
        const Character character = first_character(text);
        if (character.code == '\'')
            out += "''";
        else
            out += character.valid && !is_control(character.code) ? text.substr(0, character.bytes) : " ";
        text.remove_prefix(character.bytes);
    }
    return out + "'";
}

std::optional<std::string> run_gnuplot(const std::string& script) {
    const auto input = temporary_file();
    const auto output = temporary_file();
    const auto errors = temporary_file();
    if (std::fwrite(script.data(), 1, script.size(), input.get()) != script.size() || std::fflush(input.get()) != 0)
        throw output_error("no room for the script of a figure ({}): free disk space in TMPDIR", std::strerror(errno));
    std::rewind(input.get());

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(input.get()), 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(output.get()), 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(errors.get()), 2);
    const char* path = std::getenv("PATH");
    std::string path_variable = fmt::format("PATH={}", path == nullptr ? "/usr/bin:/bin" : path);
    std::string locale = "LC_ALL=C.UTF-8";
    std::array<char*, 3> environment = {path_variable.data(), locale.data(), nullptr};
    std::string program = "gnuplot";
    std::string defaults = "-d";
    std::string standard_input = "-";
    std::array<char*, 4> arguments = {program.data(), defaults.data(), standard_input.data(), nullptr};
    pid_t child = 0;
    const int status = posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0) return std::nullopt;
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127) return std::nullopt;
    std::string picture = read_all(output.get());
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0 || !is_complete(picture)) {
        std::string why = read_all(errors.get());
        if (why.find("unknown or ambiguous terminal") != std::string::npos)
            throw output_error("gnuplot cannot draw this format (it was built without Cairo): write .svg");
        throw data_error("gnuplot rejects the script of a figure ({})", one_line(why.substr(0, 400)));
    }
    remove_date(picture);
    return picture;
}

PictureFormat picture_format(const std::string& path) {
    const std::size_t last = path.find_last_of("./");
    const std::string extension = last != std::string::npos && path[last] == '.' ? lower_case(path.substr(last)) : "";
    if (extension == ".svg") return PictureFormat::svg;
    if (extension == ".png") return PictureFormat::png;
    if (extension == ".pdf") return PictureFormat::pdf;
    throw usage_error("{}: unknown format of a picture ({}): end the name in .svg, .png or .pdf", path,
                      extension.empty() ? "the name has no extension" : extension + " is not known");
}

std::string picture_script(const std::string& script, PictureFormat format) {
    const std::size_t start = script.find(page_terminal);
    const std::size_t end = start == std::string::npos ? start : script.find('\n', start + 1);
    int width = 0;
    int height = 0;
    if (end == std::string::npos ||
        std::sscanf(script.c_str() + start + page_terminal.size(), "%d,%d", &width, &height) != 2)
        throw data_error("the script of a figure sets no size");
    // Text of Cairo is wider, and its dashes are longer, than in a browser.
    std::string terminal;
    switch (format) {
        case PictureFormat::svg:
            terminal = fmt::format("{}{},{} dynamic", page_terminal, width, height);
            break;
        case PictureFormat::png:
            terminal = fmt::format(
                "\nset terminal pngcairo size {},{} fontscale 1.7 linewidth 2 pointscale 2.4 dashlength 0.6", 2 * width,
                2 * height);
            break;
        case PictureFormat::pdf:
            terminal = fmt::format(
                "\nset terminal pdfcairo size {:.4f}in,{:.4f}in fontscale 0.64 linewidth 1.5 pointscale 0.9",
                width / 96.0, height / 96.0);
            break;
    }
    terminal += " noenhanced font 'sans-serif,13' background rgb 'white'";
    return script.substr(0, start) + terminal + script.substr(end);
}

SeriesStyle series_style(std::size_t index) {
    static constexpr std::array<const char*, 7> colors = {"#004C7F", "#A63C00", "#009E73", "#CC79A7",
                                                          "#CF7C00", "#1573D1", "#444444"};
    static constexpr std::array<int, 9> points = {6, 2, 8, 4, 12, 10, 1, 3, 14};
    return {colors[index % colors.size()], points[index % points.size()]};
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
    std::vector<std::string> lines = {""};
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t mark = text.find_first_of(",:", at);
        const std::size_t end =
            mark == std::string::npos ? text.size() : std::min(text.find_first_not_of(' ', mark + 1), text.size());
        const std::string part = text.substr(at, end - at);
        const std::size_t shown = part.find_last_not_of(' ') + 1;
        if (!lines.back().empty() && lines.back().size() + shown > width) lines.emplace_back();
        lines.back() += part;
        at = end;
    }
    for (auto& line : lines) line.erase(line.find_last_not_of(' ') + 1);
    return lines;
}

std::string lines_quoted(const std::vector<std::string>& lines) {
    if (lines.size() == 1) return gnuplot_quoted(lines.front());
    std::string format;
    std::string arguments;
    for (const auto& line : lines) {
        format += format.empty() ? "%s" : "\\n%s";
        arguments += ", " + gnuplot_quoted(line);
    }
    return fmt::format("sprintf(\"{}\"{})", format, arguments);
}

namespace {

/// Sizes and places of the panels of a drawing, in pixels, which a page scales. Heights are counted from the top.
struct PanelGrid {
    static constexpr int right = 16;  ///< margin of a panel
    int left = 0;                     ///< margin of a panel
    int top = 0;                      ///< margin of a panel, with its title and its own legend
    int bottom = 0;                   ///< margin of a panel
    int columns = 1;
    int panel_width = 0;
    int panel_height = 0;
    int own_legend = 0;               ///< height of the legends of panels; 0 where none has one
    std::size_t own_legend_rows = 0;  ///< of the longest of them
    int heading = 0;                  ///< height of the common heading
    int legend = 0;                   ///< height of the common legend
    int legend_columns = 1;
    int width = 0;                                 ///< of the drawing
    int height = 0;                                ///< of the drawing
    std::vector<std::vector<std::string>> titles;  ///< the lines of each panel's title

    PanelGrid(const std::vector<Panel>& panels, const std::vector<LegendEntry>& entries, const PanelLayout& layout)
        : left(layout.left),
          bottom(62 + layout.more_bottom),  // with less, gnuplot leaves out the label of the axis
          columns(layout.columns > 0                         ? layout.columns
                  : panels.size() == 1                       ? 1
                  : panels.size() == 2 || panels.size() == 4 ? 2
                                                             : 3),
          panel_width(columns == 1   ? 680
                      : columns == 2 ? 500
                                     : 350),
          heading(layout.heading.empty() ? 0 : 34) {
        for (const auto& panel : panels) own_legend_rows = std::max(own_legend_rows, panel.legend.size());
        own_legend = own_legend_rows == 0 ? 0 : 14 + 20 * static_cast<int>(own_legend_rows);
        std::size_t title_lines = 1;
        for (const auto& panel : panels) {
            constexpr double character_width = 6.7;
            titles.push_back(
                wrapped(panel.title, static_cast<std::size_t>((panel_width - left + right) / character_width)));
            title_lines = std::max(title_lines, titles.back().size());
        }
        const int more_title = 16 * static_cast<int>(title_lines - 1);
        top = 36 + own_legend + more_title;
        panel_height = (columns == 1 ? 420 : columns == 2 ? 350 : 290) + own_legend + more_title + layout.more_bottom;
        width = columns * panel_width + (layout.scale ? 96 : 0);
        std::size_t longest = 0;
        for (const auto& entry : entries) longest = std::max(longest, entry.label.size());
        legend_columns =
            std::clamp(width / (70 + 9 * static_cast<int>(longest)), 1, std::max(1, static_cast<int>(entries.size())));
        const int legend_rows = (static_cast<int>(entries.size()) + legend_columns - 1) / legend_columns;
        legend = entries.empty() ? 0 : 12 + 19 * legend_rows;
        const int rows = (static_cast<int>(panels.size()) + columns - 1) / columns;
        height = rows * panel_height + legend + heading;
    }

    /// The distance of a panel's upper end from the top of the drawing.
    [[nodiscard]] int from_top(std::size_t panel) const {
        return heading + legend + static_cast<int>(panel) / columns * panel_height;
    }
    /// The command for the margins of a plot; heights are counted from the bottom here.
    [[nodiscard]] std::string margins(int x0, int x1, int y0, int y1) const {
        const auto fraction = [](int part, int total) { return static_cast<double>(part) / total; };
        return fmt::format(
            "set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\nset bmargin at screen {:.6f}\nset tmargin at "
            "screen {:.6f}\n",
            fraction(x0, width), fraction(x1, width), fraction(y0, height), fraction(y1, height));
    }
    /// The margins of a plot from x0 to x1 that is as high as a panel of the row that begins at this distance.
    [[nodiscard]] std::string row_margins(int x0, int x1, int from_top) const {
        return margins(x0, x1, height - from_top - panel_height + bottom, height - from_top - top);
    }
};

/// The common legend, drawn by a plot over the whole canvas whose curves lie outside its range.
std::string legend_script(const PanelGrid& grid, const std::vector<LegendEntry>& legend) {
    if (legend.empty()) return "";
    std::string script = grid.margins(0, grid.width, 0, grid.height);
    script += fmt::format(
        "unset border\nunset tics\nset key at screen 0.5,{:.6f} center top horizontal maxcols {} samplen 3\n"
        "plot [0:1] [0:1] ",
        1.0 - (4.0 + grid.heading) / grid.height, grid.legend_columns);
    for (std::size_t i = 0; i < legend.size(); ++i)
        script +=
            fmt::format("{}2 with {} title {}", i == 0 ? "" : ", ", legend[i].style, gnuplot_quoted(legend[i].label));
    return script + "\nunset key\nset border 3\nset xtics nomirror\nset ytics nomirror\n";
}

std::string one_panel_script(const PanelGrid& grid, const Panel& panel, std::size_t i) {
    const int x = static_cast<int>(i) % grid.columns * grid.panel_width;
    const int from_top = grid.from_top(i);
    std::string script = grid.row_margins(x + grid.left, x + grid.panel_width - grid.right, from_top);
    if (grid.own_legend > 0) {
        const auto screen = [&](int pixels) { return static_cast<double>(pixels) / grid.height; };
        script += fmt::format("set title {} offset 0,screen {:.6f}\n", lines_quoted(grid.titles[i]),
                              screen(grid.own_legend - 8));
        script += fmt::format(
            "set key at screen {:.6f},{:.6f} left top vertical maxrows {} Left reverse samplen 3 noautotitle\n",
            static_cast<double>(x + grid.left) / grid.width, 1.0 - screen(from_top + 30), grid.own_legend_rows);
    } else {
        script += fmt::format("set title {} offset 0,-0.6\n", lines_quoted(grid.titles[i]));
    }
    script += panel.settings + "plot ";
    for (std::size_t j = 0; j < panel.plots.size(); ++j) script += (j == 0 ? "" : ", \\\n  ") + panel.plots[j];
    for (const auto& entry : panel.legend)
        script += fmt::format(", \\\n  NaN with {} title {}", entry.style, gnuplot_quoted(entry.label));
    return script + "\n";
}

/// The scale of colours to the right of the first row, drawn as an image, because gnuplot's own colour box consists of
/// a hundred polygons.
std::string scale_script(const PanelGrid& grid, const ColorScale& scale) {
    constexpr int steps = 64;
    const bool one = !(scale.high > scale.low);
    const double low = one ? scale.low - 0.5 : scale.low;
    const double step = ((one ? scale.low + 0.5 : scale.high) - low) / steps;
    std::string script = "$scale << END\n";
    for (int i = 0; i < steps; ++i) {
        const double fraction = one ? 0.0 : (i + 0.5) / steps;
        const Color color = scale.color(scale.lowest + fraction * (1.0 - scale.lowest));
        for (const int column : {0, 1})  // gnuplot needs at least two columns
            script +=
                fmt::format("{} {:.8g} {} {} {}\n", column, low + (i + 0.5) * step, color.red, color.green, color.blue);
    }
    script += "END\n";
    const int x = grid.columns * grid.panel_width;
    script += grid.row_margins(x, x + 16, grid.from_top(0));
    return script +
           fmt::format(
               "unset title\nunset xtics\nunset ytics\nunset xlabel\nunset ylabel\nunset logscale\nunset arrow\n"
               "set border 0\nset y2tics {}scale 0\nset y2label {} noenhanced\nset xrange [-0.5:1.5]\n"
               "set yrange [{:.8g}:{:.8g}]\nset y2range [{:.8g}:{:.8g}]\nplot $scale using 1:2:3:4:5 with rgbimage\n",
               one ? fmt::format("({:.8g}) ", scale.low) : "", gnuplot_quoted(scale.unit), low, low + steps * step, low,
               low + steps * step);
}

}  // namespace

std::string panel_script(std::string_view title, const std::string& data, const std::string& settings,
                         const std::vector<Panel>& panels, const std::vector<LegendEntry>& legend,
                         const PanelLayout& layout) {
    const PanelGrid grid(panels, legend, layout);
    std::string script = fmt::format(
        "# {}\n# gnuplot THIS_FILE > figure.svg\nset encoding utf8{}{},{} dynamic noenhanced font 'sans-serif,13'\n{}"
        "set border 3\nset tics nomirror\nset grid lc rgb '#999999' lw 0.4 dt 3\nunset key\nset multiplot{}\n",
        gnuplot_quoted(title), page_terminal, grid.width, grid.height, data,
        layout.heading.empty() ? "" : fmt::format(" title {} font ',14'", gnuplot_quoted(layout.heading)));
    script += legend_script(grid, legend) + settings;
    for (std::size_t i = 0; i < panels.size(); ++i) script += one_panel_script(grid, panels[i], i);
    if (layout.scale) script += scale_script(grid, *layout.scale);
    return script + "unset multiplot\n";
}

}  // namespace spiked::reports
