#include "reports/latex.hpp"

#include <fmt/format.h>

#include <cstring>

#include "theory/base/names.hpp"

namespace spiked::reports {

std::string latex_text(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '\\')
            escaped += "\\textbackslash{}";
        else if (c == '^' || c == '~')
            escaped += std::string("\\") + c + "{}";
        else if (c == '<' || c == '>' || c == '|' || c == '"')  // other signs in the oldest font encoding
            escaped += c == '<' ? "$<$" : c == '>' ? "$>$" : c == '|' ? "$|$" : "''";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
            escaped += ' ';
        else
            escaped += std::strchr("&%$#_{}", c) != nullptr ? std::string("\\") + c : std::string(1, c);
    }
    return escaped;
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

/// A float that holds more does not fit a page.
bool breaks_pages(std::size_t rows) { return rows > 50; }

}  // namespace

std::string latex_packages(std::size_t rows) { return breaks_pages(rows) ? "booktabs and longtable" : "booktabs"; }

std::string latex_table(const std::vector<std::string>& header, const std::vector<bool>& numeric,
                        const std::vector<std::vector<std::string>>& rows) {
    std::string columns;
    for (const bool number : numeric) columns += number ? 'r' : 'l';
    const bool breaks = breaks_pages(rows.size());
    const char* kind = breaks ? "longtable" : "tabular";
    std::string text =
        fmt::format("\\begin{{{}}}{{{}}}\n\\toprule\n{} \\\\\n", kind, columns, fmt::join(header, " & "));
    if (breaks) text += "\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n";
    bool below_rule = breaks;
    for (const auto& row : rows) {
        const bool group = row.size() == 1 && header.size() > 1;
        if (!below_rule && (group || &row == &rows.front())) text += "\\midrule\n";
        below_rule = false;
        text += group ? fmt::format("\\multicolumn{{{}}}{{l}}{{{}}} \\\\\n", header.size(), row.front())
                      : fmt::format("{} \\\\\n", fmt::join(row, " & "));
    }
    return text + fmt::format("{}\\end{{{}}}\n", breaks ? "" : "\\bottomrule\n", kind);
}

}  // namespace spiked::reports
