#include "reports/tables/csv_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "core/text/utf8.hpp"

namespace spiked::reports {
namespace {

/// Whether a text begins with `=`, `+`, `-`, `@`, a tab or a carriage return, also in full-width form, and also after
/// blanks and characters of zero width.
bool begins_formula(std::string_view text) {
    while (!text.empty()) {
        const Character first = first_character(text);
        const char32_t code = first.code >= 0xFF01 && first.code <= 0xFF5E ? first.code - 0xFEE0 : first.code;
        if (code == '=' || code == '+' || code == '-' || code == '@' || code == '\t' || code == '\r') return true;
        if (code != ' ' && code != '\n' && code != 0xA0 && code != 0x200B && code != 0xFEFF && !is_control(code))
            return false;
        text.remove_prefix(first.bytes);
    }
    return false;
}

}  // namespace

std::string csv_line(const std::vector<std::string>& fields) {
    std::string line;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (i > 0) line += ',';
        std::string field = without_control_characters(fields[i]);
        // Spreadsheets evaluate such a field as a formula; an apostrophe makes it a text. Numbers stay numbers.
        if (begins_formula(fields[i]) && !to_number(fields[i]) && fields[i] != "-inf") field.insert(0, 1, '\'');
        // In locales with a decimal comma, spreadsheets separate fields by semicolons.
        if (field.find_first_of(",;\"\n") == std::string::npos) {
            line += field;
            continue;
        }
        line += '"';
        for (const char c : field) line += c == '"' ? "\"\"" : std::string(1, c);
        line += '"';
    }
    return line + "\n";
}

std::string exact(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

}  // namespace spiked::reports
