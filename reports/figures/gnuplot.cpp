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
    std::string extension = last != std::string::npos && path[last] == '.' ? path.substr(last) : "";
    for (char& c : extension)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
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

std::string panel_script(std::string_view title, const std::string& data, const std::string& settings,
                         const std::vector<Panel>& panels, const std::vector<LegendEntry>& legend,
                         const PanelLayout& layout) {
    // Sizes are in pixels of the drawing, which a page scales.
    const std::string_view heading = layout.heading;
    const int left = layout.left;
    constexpr int right = 16;
    std::size_t own_rows = 0;
    for (const auto& panel : panels) own_rows = std::max(own_rows, panel.legend.size());
    const int own_legend = own_rows == 0 ? 0 : 14 + 20 * static_cast<int>(own_rows);
    const int bottom = 62 + layout.more_bottom;  // with less, gnuplot leaves out the label of the axis
    const int heading_height = heading.empty() ? 0 : 34;
    const int columns = layout.columns > 0                         ? layout.columns
                        : panels.size() == 1                       ? 1
                        : panels.size() == 2 || panels.size() == 4 ? 2
                                                                   : 3;
    const int rows = (static_cast<int>(panels.size()) + columns - 1) / columns;
    const int panel_width = columns == 1 ? 680 : columns == 2 ? 500 : 350;
    std::vector<std::vector<std::string>> titles;
    std::size_t title_lines = 1;
    for (const auto& panel : panels) {
        constexpr double character_width = 6.7;  // pixels
        titles.push_back(
            wrapped(panel.title, static_cast<std::size_t>((panel_width - left + right) / character_width)));
        title_lines = std::max(title_lines, titles.back().size());
    }
    const int more_title = 16 * static_cast<int>(title_lines - 1);
    const int top = 36 + own_legend + more_title;
    const int panel_height = (columns == 1   ? 420
                              : columns == 2 ? 350
                                             : 290) +
                             own_legend + more_title + layout.more_bottom;
    const int panels_width = columns * panel_width;
    const int width = panels_width + (layout.scale ? 96 : 0);
    std::size_t longest = 0;
    for (const auto& entry : legend) longest = std::max(longest, entry.label.size());
    const int legend_columns =
        std::clamp(width / (70 + 9 * static_cast<int>(longest)), 1, std::max(1, static_cast<int>(legend.size())));
    const int legend_rows = (static_cast<int>(legend.size()) + legend_columns - 1) / legend_columns;
    const int legend_height = legend.empty() ? 0 : 12 + 19 * legend_rows;
    const int height = rows * panel_height + legend_height + heading_height;

    std::string script = fmt::format(
        "# {}\n# gnuplot THIS_FILE > figure.svg\nset encoding utf8"
        "{}{},{} dynamic noenhanced font 'sans-serif,13'\n{}"
        "set border 3\nset tics nomirror\nset grid lc rgb '#999999' lw 0.4 dt 3\nunset key\nset multiplot{}\n",
        gnuplot_quoted(title), page_terminal, width, height, data,
        heading.empty() ? "" : fmt::format(" title {} font ',14'", gnuplot_quoted(heading)));
    const auto margins = [&](int x0, int x1, int y0, int y1) {
        const auto fraction = [](int part, int total) { return static_cast<double>(part) / total; };
        return fmt::format(
            "set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\nset bmargin at screen {:.6f}\nset tmargin at "
            "screen {:.6f}\n",
            fraction(x0, width), fraction(x1, width), fraction(y0, height), fraction(y1, height));
    };
    if (!legend.empty()) {
        // The common legend is drawn by a plot over the whole canvas whose curves lie outside its range.
        script += margins(0, width, 0, height);
        script += fmt::format(
            "unset border\nunset tics\nset key at screen 0.5,{:.6f} center top horizontal maxcols {} samplen 3\n"
            "plot [0:1] [0:1] ",
            1.0 - (4.0 + heading_height) / height, legend_columns);
        for (std::size_t i = 0; i < legend.size(); ++i)
            script += fmt::format("{}2 with {} title {}", i == 0 ? "" : ", ", legend[i].style,
                                  gnuplot_quoted(legend[i].label));
        script += "\nunset key\nset border 3\nset xtics nomirror\nset ytics nomirror\n";
    }
    script += settings;
    for (std::size_t i = 0; i < panels.size(); ++i) {
        const int column = static_cast<int>(i) % columns;
        const int from_top = heading_height + legend_height + static_cast<int>(i) / columns * panel_height;
        script += margins(column * panel_width + left, (column + 1) * panel_width - right,
                          height - from_top - panel_height + bottom, height - from_top - top);
        if (own_legend > 0) {
            const auto screen = [&](int pixels) { return static_cast<double>(pixels) / height; };
            script +=
                fmt::format("set title {} offset 0,screen {:.6f}\n", lines_quoted(titles[i]), screen(own_legend - 8));
            script += fmt::format(
                "set key at screen {:.6f},{:.6f} left top vertical maxrows {} Left reverse samplen 3 noautotitle\n",
                static_cast<double>(column * panel_width + left) / width, 1.0 - screen(from_top + 30), own_rows);
        } else {
            script += fmt::format("set title {} offset 0,-0.6\n", lines_quoted(titles[i]));
        }
        script += panels[i].settings + "plot ";
        for (std::size_t j = 0; j < panels[i].plots.size(); ++j)
            script += (j == 0 ? "" : ", \\\n  ") + panels[i].plots[j];
        for (const auto& entry : panels[i].legend)
            script += fmt::format(", \\\n  NaN with {} title {}", entry.style, gnuplot_quoted(entry.label));
        script += "\n";
    }
    if (layout.scale) {
        // Drawn as an image, because gnuplot's own colour box consists of a hundred polygons.
        const auto& scale = *layout.scale;
        constexpr int steps = 64;
        const bool one = !(scale.high > scale.low);
        const double low = one ? scale.low - 0.5 : scale.low;
        const double step = ((one ? scale.low + 0.5 : scale.high) - low) / steps;
        script += "$scale << END\n";
        for (int i = 0; i < steps; ++i) {
            const double fraction = one ? 0.0 : (i + 0.5) / steps;
            const Color color = scale.color(scale.lowest + fraction * (1.0 - scale.lowest));
            for (const int column : {0, 1})  // gnuplot needs at least two columns
                script += fmt::format("{} {:.8g} {} {} {}\n", column, low + (i + 0.5) * step, color.red, color.green,
                                      color.blue);
        }
        script += "END\n";
        const int from_top = heading_height + legend_height;
        script += margins(panels_width, panels_width + 16, height - from_top - panel_height + bottom,
                          height - from_top - top);
        script += fmt::format(
            "unset title\nunset xtics\nunset ytics\nunset xlabel\nunset ylabel\nunset logscale\nunset arrow\n"
            "set border 0\nset y2tics {}scale 0\nset y2label {} noenhanced\nset xrange [-0.5:1.5]\n"
            "set yrange [{:.8g}:{:.8g}]\nset y2range [{:.8g}:{:.8g}]\nplot $scale using 1:2:3:4:5 with rgbimage\n",
            one ? fmt::format("({:.8g}) ", scale.low) : "", gnuplot_quoted(scale.unit), low, low + steps * step, low,
            low + steps * step);
    }
    return script + "unset multiplot\n";
}

}  // namespace spiked::reports
