#pragma once
#include <string>
#include <string_view>

// Edits the SVG of gnuplot as an XML document, because a label may hold any text, including one that looks like markup.
namespace spiked::reports {

/// The SVG as a separate file, with this title and description instead of those of gnuplot.
[[nodiscard]] std::string titled_svg(const std::string& svg, std::string_view title, std::string_view description);

/// The SVG as part of an HTML page: ids get the prefix `id`, black becomes currentColor, title and description are
/// added for screen readers, and definitions without a reference are removed.
[[nodiscard]] std::string inline_svg(const std::string& svg, const std::string& id, std::string_view title,
                                     std::string_view description);

}  // namespace spiked::reports
