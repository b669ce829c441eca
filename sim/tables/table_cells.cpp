#include "sim/tables/table_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {

std::size_t closing_quote(std::string_view line, std::size_t open) {
    for (std::size_t at = line.find(line[open], open + 1); at != std::string_view::npos;
         at = line.find(line[open], at + 2))
        if (at + 1 >= line.size() || line[at + 1] != line[open]) return at;
    return std::string_view::npos;
}

std::size_t count_cells(std::string_view line, char delimiter, std::size_t most) {
    std::size_t count = 0;
    each_cell(line, delimiter, [&](const TableCell&) { return ++count < most; });
    return count;
}

namespace {

/// Whether D stands here as in 1.5D+00 or 1.5d0; 12d4 may be a name.
bool is_fortran_exponent(std::string_view text, std::size_t at) {
    if (at == 0 || (text[at] != 'D' && text[at] != 'd')) return false;
    const std::string_view exponent = text.substr(at + 1);
    const bool is_signed = exponent.starts_with('+') || exponent.starts_with('-');
    return (is_signed || text.find('.') < at) && is_digits(exponent.substr(is_signed ? 1 : 0));
}

/// The number of bytes of the unsigned decimal number, with either mark, with which the text begins.
std::size_t leading_number(std::string_view text) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789.,"), text.size());
    return text.find_first_of("0123456789") < end ? end : 0;
}

}  // namespace

std::optional<double> number_with_point(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    double value = 0.0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty()) return std::nullopt;
    if (end != text.data() + text.size()) {
        const auto at = static_cast<std::size_t>(end - text.data());
        return is_fortran_exponent(text, at) ? number_with_point(std::string(text).replace(at, 1, "e")) : std::nullopt;
    }
    if (status == std::errc::result_out_of_range) {
        // from_chars does not distinguish too large from too small; strtod turns the latter into 0 or a subnormal.
        value = std::strtod(std::string(text).c_str(), nullptr);
        if (!std::isfinite(value)) return std::nullopt;
    } else if (status != std::errc{}) {
        return std::nullopt;
    }
    return value;
}

std::optional<double> number_with_comma(std::string_view text) {
    if (text.find('.') != std::string_view::npos) return std::nullopt;
    std::string with_point(text);
    if (const std::size_t comma = with_point.find(','); comma != std::string::npos) with_point[comma] = '.';
    const auto value = number_with_point(with_point);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> number_with(std::string_view text, std::optional<char> decimal) {
    return decimal == ',' ? number_with_comma(text) : number_with_point(text);
}

bool is_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_thousands(std::string_view text, char separator) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const char decimal = separator == ',' ? '.' : ',';
    text = text.substr(0, text.find(decimal));
    const std::size_t first = text.find(separator);
    if (first == std::string_view::npos || first == 0 || first > 3 || text.front() == '0') return false;
    if (!is_digits(text.substr(0, first))) return false;
    for (std::size_t at = first; at < text.size(); at += 4)
        if (text[at] != separator || text.size() - at < 4 || !is_digits(text.substr(at + 1, 3))) return false;
    return true;
}

namespace {

/// Whether it is [1.5, 2] or [1.5 2], not the [1,] with which R names a row.
bool is_list(std::string_view text) {
    if (!text.starts_with('[') || !text.ends_with(']')) return false;
    const std::size_t first = std::min(text.find_first_not_of(" ", 1), text.size());
    const std::size_t next = text.find_first_not_of(" ,", std::min(text.find_first_of(" ,", first), text.size()));
    return begins_number(text.substr(first)) && next != text.npos && begins_number(text.substr(next));
}

/// A remedy for a number that holds an invisible character, such as a zero-width space; empty for other texts.
std::string unseen_sign(std::string_view text) {
    static constexpr std::pair<std::string_view, const char*> signs[] = {
        {"\u00AD", "U+00AD"}, {"\u200B", "U+200B"}, {"\u200C", "U+200C"}, {"\u200D", "U+200D"},
        {"\u200E", "U+200E"}, {"\u200F", "U+200F"}, {"\u202A", "U+202A"}, {"\u202C", "U+202C"},
        {"\u202D", "U+202D"}, {"\u2060", "U+2060"}, {"\uFEFF", "U+FEFF"}};
    constexpr std::size_t longest = 64;
    if (text.size() > longest) return "";
    for (const auto& [sign, name] : signs) {
        std::string without(text);
        for (std::size_t at = 0; (at = without.find(sign, at)) != without.npos;) without.erase(at, sign.size());
        if (without.size() < text.size() && (number_with_point(without) || number_with_comma(without)))
            return fmt::format("it holds {}, which is not seen", name);
    }
    return "";
}

}  // namespace

std::string_view other_separator(std::string_view line) {
    constexpr std::size_t longest = 3;
    std::string_view found;
    line = without_blanks(line);
    if (is_date_or_time(line)) return {};
    for (std::size_t at = 0, numbers = 0;;) {
        double value = 0.0;
        const char* const end = line.data() + line.size();
        const auto [behind, status] = std::from_chars(line.data() + at, end, value);
        if (status != std::errc{}) return {};
        ++numbers;
        if (behind == end) return numbers > 1 ? found : std::string_view();
        at = static_cast<std::size_t>(behind - line.data());
        const std::size_t next = line.find_first_of("0123456789+-.", at);
        if (next == line.npos || next == at || next - at > longest) return {};
        const std::string_view between = line.substr(at, next - at);
        if (!found.empty() && between != found) return {};
        if (between.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t,;|'\"\\&") != between.npos)
            return {};
        found = between;
        at = next;
    }
}

namespace {

/// (2), [1.2, 1.8] and others behind a number and perhaps a blank.
bool is_uncertainty(std::string_view text) {
    if (text.starts_with(' ')) text.remove_prefix(1);
    const bool enclosed =
        (text.starts_with('(') && text.ends_with(')')) || (text.starts_with('[') && text.ends_with(']'));
    return enclosed && text.size() > 2 && text.find_first_of("0123456789") != text.npos &&
           text.substr(1, text.size() - 2).find_first_not_of("0123456789.,;+-eE% ") == text.npos;
}

}  // namespace

std::string unread_notation(std::string_view text) {
    static constexpr std::string_view currencies[] = {"$", "\u20AC", "\u00A3", "\u00A5", "\u20B9"};
    static constexpr std::string_view bounds[] = {"<", ">", "~", "\u2264", "\u2265", "\u00B1"};
    static constexpr std::string_view spaces[] = {" ", "'", "\u00A0", "\u202F", "\u2009", "\u2019", "\xA0"};
    static constexpr std::string_view powers[] = {"x10^",     "*10^",       " x 10^",  " * 10^",
                                                  "\u00D710", " \u00D7 10", "\u00B710"};
    const auto begins = [&](std::string_view mark) { return text.starts_with(mark); };
    const auto contains = [&](std::string_view mark) { return text.find(mark) != text.npos; };
    if (text == "True" || text == "False" || text == "TRUE" || text == "FALSE" || text == "true" || text == "false")
        return "a truth value, not 1 or 0";
    if (begins("\u2212")) return "its minus is the sign U+2212, not a hyphen";
    if (const auto sign = unseen_sign(text); !sign.empty()) return sign;
    if (is_list(text)) return "a list of numbers in one cell";
    if (begins("np.") && text.ends_with(')') && text.find_first_of("0123456789+-.", text.find('(')) != text.npos)
        return "a number as NumPy prints it";
    if (begins("(") && text.ends_with(')')) {
        text = text.substr(1, text.size() - 2);
        if (leading_number(text) == text.size()) return "a number in parentheses";
        return unread_notation(text) == "a complex number" ? "a complex number" : "";
    }
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (std::any_of(std::begin(bounds), std::end(bounds), begins)) {
        const std::size_t digit = text.find_first_of("0123456789.");
        return digit <= 4 && leading_number(text.substr(digit)) > 0 ? "a bound" : "";
    }
    if (std::any_of(std::begin(currencies), std::end(currencies), begins)) return "with a currency";
    const std::size_t end = leading_number(text);
    if (end == 0) return "";
    const std::string_view rest = text.substr(end);
    if (rest.empty()) return has_thousands(text, ',') || has_thousands(text, '.') ? "with separators of thousands" : "";
    if (std::any_of(std::begin(currencies), std::end(currencies), contains)) return "with a currency";
    if (rest == "%" || rest == " %") return "a percentage";
    if (text.starts_with("0x") && text.find_first_not_of("0123456789abcdefABCDEF.pP+-", 2) == text.npos)
        return "a hexadecimal number";
    const bool is_signed = rest.front() == '-' || rest.front() == '+';
    if (is_signed && rest.size() == 4 && is_digits(rest.substr(1)) && text.find('.') < end)
        return "an exponent without its E, as Fortran writes it";
    if ((rest.front() == 'e' || rest.front() == 'E') && std::isinf(std::strtod(std::string(text).c_str(), nullptr)))
        return "beyond the largest number of double precision";
    if (rest.starts_with("*^")) return "an exponent as Mathematica writes it";
    if (rest == "-") return "its minus stands behind the number";
    if (rest.front() == '/' && is_digits(rest.substr(1))) return "a fraction";
    if (std::any_of(std::begin(powers), std::end(powers), [&](auto mark) { return rest.starts_with(mark); }))
        return "with a power of ten";
    if (contains("\u00B1") || is_uncertainty(rest)) return "with its uncertainty";
    const bool imaginary = rest.ends_with('j') || rest.ends_with('i');
    if (imaginary && (rest.size() == 1 || rest.find_first_not_of("0123456789.eE+- ") == rest.size() - 1))
        return "a complex number";
    for (const auto space : spaces)
        if (rest.starts_with(space) && rest.size() >= space.size() + 3 && is_digits(rest.substr(space.size(), 3)))
            return "with separators of thousands";
    const std::string_view unit = rest.substr(rest.front() == ' ' ? 1 : 0);
    const bool letters = std::all_of(unit.begin(), unit.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
    return letters && !unit.empty() && unit.size() <= 3 ? "with a unit" : "";
}

std::string missing_advice(const std::string& option) {
    if (option.empty()) return "";
    return fmt::format("say {} if they are missing at random, or ", option);
}

void MissingCells::set_first(const TableCell& cell, bool corner, std::string place) {
    corner_ = corner;
    place_ = std::move(place);
    text_ = cell.text.empty() ? "an empty cell" : in_quotes(cell.text);
}

void MissingCells::reject(std::size_t rows) const {
    if (count_ == 0) return;
    throw input_error(
        "{}: {} {}infinite {} in {} {} (the first, here, is {}): {}{}leave out the rows or columns that hold them, or "
        "fill them in",
        place_, count_, keep_ ? "" : "missing or ", count_ == 1 ? "value" : "values", rows, rows == 1 ? "row" : "rows",
        text_, corner_ ? "say --header yes --index yes where the first line names the columns, otherwise " : "",
        infinite_ == 0 ? missing_advice(option_) : "");
}

bool has_touching_numbers(std::string_view text) {
    constexpr std::size_t longest = 256;
    if (text.size() > longest) return false;
    for (std::size_t at = text.find('-', 1); at < text.size(); at = text.find('-', at + 1)) {
        const auto is_real = [](std::string_view part) {
            return part.find('.') != part.npos && number_with_point(part).has_value();
        };
        const std::string_view behind = text.substr(at);
        if (is_real(text.substr(0, at)) && (is_real(behind) || has_touching_numbers(behind))) return true;
    }
    return false;
}

void FirstColumn::add(std::size_t row, double value, std::string_view text) {
    const bool digits = is_digits(text);
    constexpr double rounding = 0.05;  // of a step
    if (row == 0) first = value;
    if (row == 1) step = value - first;
    counts = counts && digits && first <= 1.0 && value == first + static_cast<double>(row);
    whole = whole && digits;
    padded = padded || (text.size() > 1 && text.front() == '0');
    if (row == 0) width = text.size();
    same_width = same_width && text.size() == width;
    increases = increases && (row == 0 || value > last);
    even = even && (row == 0 || (step != 0.0 && std::abs(value - last - step) <= rounding * std::abs(step)));
    last = value;
}

bool is_empty_line(std::string_view text) { return text.find_first_not_of(" \t,;|") == text.npos; }

std::size_t comment_mark(std::string_view text) {
    if (text.starts_with("//")) return 2;
    const std::size_t semicolons = std::min(text.find_first_not_of(';'), text.size());
    if (semicolons > 0)  // which separate cells where there are others or no blank
        return text.substr(semicolons).starts_with(' ') && text.find(';', semicolons) == text.npos ? semicolons : 0;
    const bool mark = !text.empty() && std::string_view("#%!@").find(text.front()) != std::string_view::npos;
    return mark && !is_missing(text.substr(0, text.find_first_of(",;|\t "))) ? 1 : 0;
}

bool begins_comment(std::string_view text) {
    text.remove_prefix(text.find_first_not_of(" \t"));
    return comment_mark(text) > 0;
}

std::string_view comment_behind(std::string_view line) {
    static constexpr std::string_view marks[] = {"#", "%", "!", "//"};
    const std::size_t digit = std::min(line.find_first_of("0123456789"), line.size());
    for (std::size_t at = line.find_first_of(" \t", digit); at < line.size(); at = line.find_first_of(" \t", at + 1))
        for (const auto mark : marks)
            if (line.substr(at + 1).starts_with(mark) && comment_mark(line.substr(at + 1)) > 0)
                return line.substr(at + 1);
    return {};
}

bool opens_quote(std::string_view text) {
    for (std::size_t at = text.find('"'); at != text.npos; at = text.find('"', at + 1)) {
        const bool begins_cell = at == 0 || std::string_view(",;|\t").find(text[at - 1]) != std::string_view::npos;
        if (!begins_cell || at + 1 == text.size() || text[at + 1] == ' ') continue;
        at = closing_quote(text, at);
        if (at == text.npos) return true;
    }
    return false;
}

bool begins_number(std::string_view text) { return text.find_first_of("0123456789+-.") == 0; }

namespace {

/// The kind of a cell where the decimal mark may still be either. A comma between blanks is a decimal mark only between
/// digits.
CellKind kind_of_cell(const TableCell& cell, char delimiter, std::optional<char> decimal) {
    if (is_missing(cell.text)) return CellKind::missing;
    if (decimal.value_or('.') == '.' && number_with_point(cell.text)) return CellKind::number;
    if (decimal.value_or(',') != ',') return CellKind::text;
    const bool loose = delimiter == ' ' && (cell.text.front() == ',' || cell.text.back() == ',');
    return !loose && number_with_comma(cell.text) ? CellKind::number : CellKind::text;
}

}  // namespace

LineSummary summary_of(std::string_view line, char delimiter, std::optional<char> decimal, std::size_t from,
                       std::size_t limit) {
    LineSummary found;
    std::size_t at = 0;
    each_cell(line, delimiter, [&](const TableCell& cell) {
        if (at++ < from) return true;
        const CellKind kind = kind_of_cell(cell, delimiter, decimal);
        if (found.cells == 0) {
            found.first = cell.text.substr(0, 64);
            found.first_kind = kind;
            found.first_quoted = cell.quoted;
        }
        const bool digits = is_digits(cell.text) && cell.text.size() < 16;
        if (found.counts && digits) {
            const double value = *number_with_point(cell.text);
            if (found.cells == 0) found.first_number = value;
            found.counts = found.first_number <= 1.0 && value == found.first_number + static_cast<double>(found.cells);
        } else {
            found.counts = false;
        }
        const auto value = number_with(cell.text, decimal);
        found.increases = found.increases && value && (found.cells == 0 || *value > found.last_number);
        found.decreases = found.decreases && value && (found.cells == 0 || *value < found.last_number);
        found.years = found.increases && found.years && digits && *value >= 1800 && *value <= 2100 &&
                      (found.cells == 0 || *value == found.last_number + 1.0);
        if (value) found.last_number = *value;
        found.numbers += kind == CellKind::number;
        found.quoted += kind == CellKind::number && cell.quoted;
        found.words += kind == CellKind::text;
        found.like_numbers += kind == CellKind::text &&
                              (cell.quoted ? is_list(cell.text) : begins_number(cell.text) || is_list(cell.text));
        found.digits += kind == CellKind::number && digits;
        found.missing += kind == CellKind::missing && !cell.text.empty();
        return ++found.cells < limit;
    });
    return found;
}

std::size_t name_columns(const std::vector<std::string_view>& lines, char delimiter, std::optional<char> decimal,
                         std::size_t columns) {
    for (std::size_t column = 0; column < columns; ++column) {
        std::size_t names = 0;
        for (const auto line : lines) {
            const auto cell = summary_of(line, delimiter, decimal, column, 1);
            // Behind a name, what begins like a number may be one in a notation that is not read.
            names += cell.words == 1 && (column == 0 || is_date_or_time(cell.first) ||
                                         (!begins_number(cell.first) && unread_notation(cell.first).empty()));
        }
        if (2 * names <= lines.size()) return column;
    }
    return 0;
}

MarksSeen marks_in(const std::vector<std::string_view>& lines, char delimiter) {
    MarksSeen seen;
    for (const auto line : lines) {
        std::size_t cells = 0;
        each_cell(line, delimiter, [&](const TableCell& cell) {
            const bool point = cell.text.find('.') != cell.text.npos && number_with_point(cell.text);
            const bool comma = cell.text.find(',') != cell.text.npos &&
                               (number_with_comma(cell.text) || has_thousands(cell.text, ','));
            if (point && seen.point.empty()) seen.point = cell.text;
            if (comma && seen.comma.empty()) seen.comma = cell.text;
            if ((comma && !has_thousands(cell.text, ',')) || (point && !has_thousands(cell.text, '.')))
                seen.only_thousands = false;
            seen.numbers += point || comma || number_with_point(cell.text);
            seen.digits += is_digits(cell.text);
            return ++cells < cells_looked_at;
        });
    }
    return seen;
}

std::string delimiter_text(char delimiter) {
    if (delimiter == '\t') return "delimiter tab";
    if (delimiter == ' ') return "blanks between cells";
    return fmt::format("delimiter '{}'", delimiter);
}

}  // namespace spiked::sim
