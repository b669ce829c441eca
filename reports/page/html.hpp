#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/markup.hpp"

namespace spiked::reports {

/// A fragment of HTML, made from text by escaping or declared to be markup.
struct Html {
    std::string markup;
    Html(std::string_view text) : markup(escape(text)) {}
    Html(const std::string& text) : markup(escape(text)) {}
    Html(const char* text) : markup(escape(text)) {}
    [[nodiscard]] static Html raw(std::string markup);
};

/// A table with a caption; columns named with a leading '#' hold numbers and are aligned to the right.
class HtmlTable {
public:
    HtmlTable(std::string_view caption, const std::vector<std::string>& columns);
    /// Limits the body of the table: further rows are left out and counted, and a note below the table gives their
    /// number and `where` all rows can be found.
    void limit(std::size_t bytes, std::string_view where);
    /// `id` and `css_class` may be empty.
    void add(const std::vector<Html>& cells, std::string_view id = "", std::string_view css_class = "");
    /// The number of rows, including those left out.
    [[nodiscard]] std::size_t rows() const { return rows_; }
    [[nodiscard]] std::string html() const;

private:
    std::string head_;
    std::string body_;
    std::vector<bool> numeric_;
    std::size_t rows_ = 0;
    std::size_t left_out_ = 0;
    std::size_t most_bytes_ = std::numeric_limits<std::size_t>::max();
    std::string where_;
};

/// The beginning and the end of a self-contained page, with the style sheet and a policy that forbids loading anything.
[[nodiscard]] std::string page_head(std::string_view title, std::string_view generator);
inline constexpr std::string_view page_end = "</main>\n</body>\n</html>\n";

/// A position on a page: the prefix of its ids and the level of its section headings.
struct PagePlace {
    std::string prefix = {};
    int level = 2;
};
[[nodiscard]] std::string section(const PagePlace& place, std::string_view id, std::string_view title,
                                  const std::string& markup);
/// A heading one level below that of a section.
[[nodiscard]] std::string subheading(const PagePlace& place, std::string_view title);
[[nodiscard]] Html code(std::string_view text);
/// A paragraph of plain text, in which two backticks enclose code.
[[nodiscard]] std::string paragraph(std::string_view text, std::string_view css_class = "note");

/// A block that opens on a click and in print.
[[nodiscard]] std::string folded(std::string_view summary, const std::string& markup);

}  // namespace spiked::reports
