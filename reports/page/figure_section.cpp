#include "reports/page/figure_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "reports/figures/figures.hpp"
#include "reports/figures/svg.hpp"

namespace spiked::reports {
namespace {

constexpr std::size_t data_rows_shown = 200;

std::string figure_html(const Figure& figure, std::size_t index, const PagePlace& place) {
    const std::string id = fmt::format("{}figure-{}", place.prefix, index);
    const std::string title = fmt::format("Figure {}. {}", index, figure.title);
    std::string markup = fmt::format("<figure id=\"{}\">\n", id) + subheading(place, title);
    if (!figure.svg.empty())
        markup += "<div class=\"scroll\" tabindex=\"0\">\n" + inline_svg(figure.svg, id, title, figure.description) +
                  "\n</div>\n";
    if (!figure.problem.empty()) markup += paragraph("Note: " + figure.problem + ".");
    if (!figure.description.empty()) markup += "<figcaption>" + escape(figure.description) + "</figcaption>\n";
    if (!figure.rows.empty()) {
        HtmlTable table("", figure.columns);
        for (std::size_t i = 0; i < std::min(figure.rows.size(), data_rows_shown); ++i)
            table.add(std::vector<Html>(figure.rows[i].begin(), figure.rows[i].end()));
        std::string data = table.html();
        if (figure.rows.size() > data_rows_shown)
            data += paragraph(fmt::format("The first {} of {} rows; spiked report --figures FOLDER writes them all.",
                                          data_rows_shown, figure.rows.size()));
        markup += folded(fmt::format("Data of figure {}", index), data);
    }
    return markup + "</figure>\n";
}

/// Writes the script, the data and the pictures of a figure into the folder of the options.
void write_figure(const Figure& figure, std::size_t index, const PagePlace& place, const ReportOptions& options) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::create_directories(options.figure_folder, error);
    if (error)
        throw output_error("{}: the folder for figures cannot be made ({}): check permissions", options.figure_folder,
                           error.message());
    std::string kind;
    for (const char c : figure.kind) kind += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
    const std::string stem =
        (fs::path(options.figure_folder) / fmt::format("{}figure-{}-{}", place.prefix, index, kind)).string();
    const auto write = [](const std::string& path, const std::string& text) {
        if (!text.empty()) write_derived_file(path, text);
    };
    write(stem + ".gp", figure.script);
    write(stem + ".csv", figure.csv);
    for (const auto& format : options.figure_formats)
        if (!figure.svg.empty()) write_picture(figure, stem + "." + format, SideFiles::none);
}

}  // namespace

std::string figures_markup(validation::Database& store, const PagePlace& place, const ReportOptions& options,
                           const std::optional<std::string>& map_of, std::size_t most_bytes) {
    std::string markup;
    std::size_t index = 0;
    auto all = figures_of(store);
    if (map_of) {
        auto map = figures_of_kind("map", store, Json::object({{"y", *map_of}}));
        map.front().kind = "map";
        all.insert(all.begin(), map.begin(), map.end());
    }
    for (auto& figure : all) {
        ++index;
        if (!options.figure_folder.empty()) write_figure(figure, index, place, options);
        std::string one = figure_html(figure, index, place);
        if (markup.size() + one.size() > most_bytes / 2) {
            // The data of a figure is smaller than its picture, and its caption is smaller than both.
            figure.svg.clear();
            figure.problem += fmt::format(
                "{}the picture is left out to keep the page small (spiked report STORE --figures FOLDER draws it)",
                figure.problem.empty() ? "" : "; ");
            one = figure_html(figure, index, place);
            if (markup.size() + one.size() > most_bytes / 2) {
                figure.rows.clear();
                figure.problem += ", and so is its data";
                one = figure_html(figure, index, place);
            }
        }
        markup += one;
    }
    return markup;
}

}  // namespace spiked::reports
