#include "sim/io/table_cells.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

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

std::optional<double> number_with_point(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    double value = 0.0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || end != text.data() + text.size()) return std::nullopt;
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

bool is_missing(std::string_view text) {
    static constexpr std::string_view words[] = {
        "",        "na",      "n/a",      "nan",    "-nan",   "<na>",    "nat",       "null",
        "none",    "nil",     "missing",  "?",      ".",      "-",       "--",        "inf",
        "+inf",    "-inf",    "infinity", "#n/a",   "#null!", "#na",     "#num!",     "#value!",
        "#div/0!", "-1.#ind", "1.#qnan",  "1.#inf", "+nan",   "-1.#inf", "-infinity", "+infinity"};
    if (text.size() > 9) return false;
    std::string lower(text);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return std::find(std::begin(words), std::end(words), lower) != std::end(words);
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

std::string delimiter_text(char delimiter) {
    if (delimiter == '\t') return "delimiter tab";
    if (delimiter == ' ') return "blanks between cells";
    return fmt::format("delimiter '{}'", delimiter);
}

std::string delimiter_option(char delimiter) {
    switch (delimiter) {
        case ',':
            return "comma";
        case ';':
            return "semicolon";
        case '\t':
            return "tab";
        case '|':
            return "bar";
        default:
            return "blank";
    }
}

}  // namespace spiked::sim
