#include "reports/page/html.hpp"

#include <fmt/format.h>

#include "core/files/sha256.hpp"
#include "reports/page/page_style.hpp"

namespace spiked::reports {

Html Html::raw(std::string markup) {
    Html html("");
    html.markup = std::move(markup);
    return html;
}

HtmlTable::HtmlTable(std::string_view caption, const std::vector<std::string>& columns) {
    head_ = "<table>\n";
    if (!caption.empty()) head_ += "<caption>" + escape(caption) + "</caption>\n";
    head_ += "<thead><tr>";
    for (const auto& column : columns) {
        const bool numeric = column.starts_with('#');
        numeric_.push_back(numeric);
        head_ += fmt::format("<th scope=\"col\"{}>{}</th>", numeric ? " class=\"num\"" : "",
                             escape(std::string_view(column).substr(numeric ? 1 : 0)));
    }
    head_ += "</tr></thead>\n";
}

void HtmlTable::add(const std::vector<Html>& cells, std::string_view id, std::string_view css_class) {
    ++rows_;
    const std::size_t before = body_.size();
    if (left_out_ > 0) {
        ++left_out_;
        return;
    }
    body_ += "<tr";
    if (!id.empty()) body_ += fmt::format(" id=\"{}\"", escape(id));
    if (!css_class.empty()) body_ += fmt::format(" class=\"{}\"", escape(css_class));
    body_ += ">";
    for (std::size_t c = 0; c < cells.size(); ++c)
        body_ += fmt::format("<td{}>{}</td>", numeric_[c] ? " class=\"num\"" : "", cells[c].markup);
    body_ += "</tr>\n";
    if (body_.size() <= most_bytes_) return;
    body_.resize(before);
    left_out_ = 1;
}

void HtmlTable::limit(std::size_t bytes, std::string_view where) {
    most_bytes_ = bytes;
    where_ = where;
}

std::string HtmlTable::html() const {
    constexpr std::size_t narrow = 9;  // columns
    return (numeric_.size() > narrow
                ? fmt::format("<p class=\"note wide\">{} columns: where they do not fit, the table "
                              "scrolls sideways.</p>\n",
                              numeric_.size())
                : "") +
           "<div class=\"scroll\" tabindex=\"0\">\n" + head_ + "<tbody>\n" + body_ + "</tbody>\n</table>\n</div>\n" +
           (left_out_ > 0 ? paragraph(fmt::format("{} of {} rows are left out to keep the page small; {} has them all.",
                                                  left_out_, rows_, where_))
                          : "");
}

std::string page_head(std::string_view title, std::string_view generator) {
    const auto digest = sha256(page_style);
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; img-src "
        "data:; base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"{}\">\n"
        "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n",
        base64(digest), escape(generator), escape(title), page_style);
}

std::string section(const PagePlace& place, std::string_view id, std::string_view title, const std::string& markup) {
    return fmt::format("<section id=\"{0}{1}\">\n<h{2}>{3}</h{2}>\n{4}</section>\n", place.prefix, id, place.level,
                       escape(title), markup);
}

std::string subheading(const PagePlace& place, std::string_view title) {
    return fmt::format("<h{0}>{1}</h{0}>\n", place.level + 1, escape(title));
}

Html code(std::string_view text) { return Html::raw("<code>" + escape(text) + "</code>"); }

std::string paragraph(std::string_view text, std::string_view css_class) {
    std::string markup;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = text.find('`', at);
        const std::size_t end = begin == text.npos ? begin : text.find('`', begin + 1);
        if (end == text.npos) {
            markup += escape(text.substr(at));
            break;
        }
        markup += escape(text.substr(at, begin - at)) + code(text.substr(begin + 1, end - begin - 1)).markup;
        at = end + 1;
    }
    return fmt::format("<p class=\"{}\">{}</p>\n", css_class, markup);
}

std::string folded(std::string_view summary, const std::string& markup) {
    return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape(summary), markup);
}

}  // namespace spiked::reports
