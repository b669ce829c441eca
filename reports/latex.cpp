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

std::string latex_table(const std::vector<std::string>& header, const std::vector<bool>& numeric,
                        const std::vector<std::vector<std::string>>& rows) {
    std::string columns;
    for (const bool number : numeric) columns += number ? 'r' : 'l';
    std::string text = fmt::format("\\begin{{tabular}}{{{}}}\n\\toprule\n{} \\\\\n", columns, fmt::join(header, " & "));
    bool ruled = false;
    for (const auto& row : rows) {
        const bool group = row.size() == 1 && header.size() > 1;
        if (group || !ruled) text += "\\midrule\n";
        ruled = true;
        text += group ? fmt::format("\\multicolumn{{{}}}{{l}}{{{}}} \\\\\n", header.size(), row.front())
                      : fmt::format("{} \\\\\n", fmt::join(row, " & "));
    }
    return text + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace spiked::reports
