#include "reports/tables/latex.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/text/names.hpp"
#include "core/text/printable.hpp"

namespace spiked::reports {

std::string latex_text(const std::string& text) {
    std::string escaped;
    for (const char c : one_line(text)) {
        if (c == '\\')
            escaped += "\\textbackslash{}";
        else if (c == '^' || c == '~')
            escaped += std::string("\\") + c + "{}";
        else if (c == '<' || c == '>' || c == '|' || c == '"')  // other characters in LaTeX's default font encoding
            escaped += c == '<' ? "$<$" : c == '>' ? "$>$" : c == '|' ? "$|$" : "''";
        else
            escaped += std::strchr("&%$#_{}", c) != nullptr ? std::string("\\") + c : std::string(1, c);
    }
    // At the beginning of a row LaTeX would read these as arguments of the preceding line break or rule.
    return escaped.starts_with('[') || escaped.starts_with('*') ? "{}" + escaped : escaped;
}

std::string latex_number(const std::string& text, bool bold) {
    if (text == "-") return "--";
    const std::size_t bracket = text.find('(');
    if (!to_number(text.substr(0, bracket))) return latex_text(text);
    const std::size_t power = text.find('e');
    std::string number = text.substr(0, power);
    if (power != std::string::npos)
        number += fmt::format("\\times 10^{{{}}}",
                              to_integer(text.substr(power + (text[power + 1] == '+' ? 2 : 1))).value_or(0));
    return bold ? fmt::format("$\\mathbf{{{}}}$", number) : "$" + number + "$";
}

namespace {

constexpr double page_rows = 38.0;           // of a page in 10 point type
constexpr double group_rows = 1.6;           // height of the heading of a group and the rule above it, in rows
constexpr std::size_t line_characters = 70;  // of LaTeX source, markup included; a line of text holds at least these
constexpr const char* scale_to_line =
    "\\noindent\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n";

/// Characters of the widest row if every column were as wide as its widest cell.
std::size_t table_characters(const std::vector<std::string>& header,
                             const std::vector<std::vector<std::string>>& rows) {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < header.size(); ++c) {
        std::size_t widest = header[c].size();
        for (const auto& row : rows)
            if (row.size() == header.size()) widest = std::max(widest, row[c].size());
        sum += widest + 2;
    }
    return sum;
}

}  // namespace

std::string latex_table(const std::vector<std::string>& header, const std::vector<bool>& numeric,
                        const std::vector<std::vector<std::string>>& rows) {
    std::string columns;
    for (const bool number : numeric) columns += number ? 'r' : 'l';
    const bool wide = table_characters(header, rows) > line_characters;
    const auto part = [&](std::size_t from, std::size_t to) {
        std::string text = fmt::format("{}\\begin{{tabular}}{{{}}}\n\\toprule\n{} \\\\\n\\midrule\n",
                                       wide ? scale_to_line : "", columns, fmt::join(header, " & "));
        for (std::size_t r = from; r < to; ++r) {
            const auto& row = rows[r];
            const bool group = row.size() == 1 && header.size() > 1;
            if (group && r > from) text += "\\midrule\n";
            text += group ? fmt::format("\\multicolumn{{{}}}{{l}}{{{}}} \\\\\n", header.size(), row.front())
                          : fmt::format("{} \\\\\n", fmt::join(row, " & "));
        }
        return text + fmt::format("\\bottomrule\n\\end{{tabular}}{}\n", wide ? "}" : "");
    };
    std::string text;
    for (std::size_t from = 0; from < rows.size() || text.empty();) {
        double used = 0.0;
        std::size_t to = from;
        while (to < rows.size()) {
            used += rows[to].size() == 1 && header.size() > 1 ? group_rows : 1.0;
            if (used > page_rows && to > from) break;
            ++to;
        }
        if (to < rows.size() && to > from + 1 && rows[to - 1].size() == 1 && header.size() > 1)
            --to;  // no page ends with the heading of a group
        text += (text.empty() ? "" : "\n\\bigskip\n") + part(from, to);
        from = to;
    }
    return text;
}

std::string latex_packages(const std::string& table) {
    return table.find("\\resizebox") == std::string::npos ? "booktabs" : "booktabs and graphicx";
}

}  // namespace spiked::reports
