#pragma once
#include <string>
#include <string_view>

// What gnuplot draws as SVG, edited as a document: a label may hold any text, also one that looks like markup.
namespace spiked::reports {

/// A file of its own, under that title and description instead of gnuplot's name.
[[nodiscard]] std::string titled_svg(const std::string& svg, std::string_view title, std::string_view description);

/// Made fit for a page: ids prefixed by `id`, black in currentColor, title and description for those who cannot see it,
/// and what nothing refers to left out.
[[nodiscard]] std::string inline_svg(const std::string& svg, const std::string& id, std::string_view title,
                                     std::string_view description);

}  // namespace spiked::reports
