#include "reports/tables/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/text/printable.hpp"
#include "core/text/terminal.hpp"
#include "validation/statistics/clustered.hpp"

namespace spiked::reports {

void TextTable::add(std::vector<std::string> row) {
    constexpr std::size_t widest = 1000;  // limits the output: every row is padded to the widest cell
    for (auto& cell : row) {
        cell = one_line(std::move(cell));
        if (cell.size() <= widest) continue;
        cell.resize(widest);
        trim_partial_character(cell);
        cell += "...";
    }
    rows_.push_back(std::move(row));
}

bool TextTable::left(std::size_t column) const { return column < left_aligned_ || left_columns_.contains(column); }

namespace {

using TableRows = std::vector<std::vector<std::string>>;
constexpr std::size_t column_gap = 2;      // between two columns
constexpr std::size_t rows_together = 20;  // of a folded table: all columns of these rows are near each other

/// Breaks a cell at spaces into parts of at most `room` characters; a longer word stays whole.
std::vector<std::string> broken_cell(const std::string& cell, std::size_t room) {
    std::vector<std::string> parts(1);
    for (std::size_t at = 0; at < cell.size();) {
        const std::size_t end = std::min(cell.find(' ', at), cell.size());
        const std::string word = cell.substr(at, end - at);
        if (!parts.back().empty() && parts.back().size() + 1 + word.size() > room) parts.emplace_back();
        parts.back() += (parts.back().empty() ? "" : " ") + word;
        at = end + 1;
    }
    return parts;
}

/// The number of first columns that tell the rows apart; 0 where they are wider than `room`, or where none do.
std::size_t telling_columns(const TableRows& rows, const std::vector<std::size_t>& width, std::size_t room) {
    std::size_t used = 0;
    for (std::size_t columns = 1; columns < width.size(); ++columns) {
        used += width[columns - 1] + column_gap;
        if (used > room) break;
        std::set<std::vector<std::string>> seen;
        for (const auto& row : rows)
            seen.emplace(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(std::min(columns, row.size())));
        if (seen.size() == rows.size()) return columns;
    }
    return 0;
}

}  // namespace

std::string TextTable::text() const { return text(table_columns()); }

std::string TextTable::text(std::size_t columns) const {
    std::vector<std::size_t> width(rows_.front().size());
    for (const auto& row : rows_)
        for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
    const auto line_of = [&](const std::vector<std::string>& row, const std::vector<std::size_t>& shown) {
        std::string line;
        for (const auto c : shown)
            if (c < row.size())
                line += left(c) ? fmt::format("{:<{}}  ", row[c], width[c]) : fmt::format("{:>{}}  ", row[c], width[c]);
        line.erase(line.find_last_not_of(' ') + 1);
        return line + "\n";
    };
    std::string text;
    std::vector<std::size_t> all(width.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const std::size_t whole = std::accumulate(width.begin(), width.end(), column_gap * (width.size() - 1));
    if (columns == 0 || whole <= columns || width.size() == 1) {
        for (const auto& row : rows_) text += line_of(row, all);
        return text;
    }

    const std::size_t keys = telling_columns(rows_, width, columns / 2);
    const std::size_t number_width = std::max<std::size_t>(3, std::to_string(rows_.size() - 1).size());
    std::size_t key_width = keys > 0 ? 0 : number_width + column_gap;
    for (std::size_t c = 0; c < keys; ++c) key_width += width[c] + column_gap;
    const std::size_t room = std::max<std::size_t>(columns - std::min(columns, key_width), 10);
    for (std::size_t c = keys; c < width.size(); ++c)
        if (left(c)) width[c] = std::min(width[c], room);
    // A row with cells that are wider than their columns takes several lines.
    const auto lines_of = [&](std::size_t row, const std::vector<std::size_t>& shown) {
        std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(width.size()));
        for (const auto c : shown) {
            if (c >= rows_[row].size()) continue;
            const auto parts = left(c) ? broken_cell(rows_[row][c], width[c]) : std::vector{rows_[row][c]};
            if (parts.size() > lines.size()) lines.resize(parts.size(), std::vector<std::string>(width.size()));
            for (std::size_t part = 0; part < parts.size(); ++part) lines[part][c] = parts[part];
        }
        std::string joined;
        for (std::size_t line = 0; line < lines.size(); ++line) {
            const std::string number = line > 0 ? "" : row == 0 ? "row" : std::to_string(row);
            joined += (keys > 0 ? "" : fmt::format("{:>{}}  ", number, number_width)) + line_of(lines[line], shown);
        }
        return joined;
    };
    for (std::size_t begin = 1; begin < std::max<std::size_t>(rows_.size(), 2); begin += rows_together) {
        const std::size_t end = std::min(begin + rows_together, rows_.size());
        if (begin > 1) text += "... further rows\n";
        for (std::size_t first = keys; first < width.size();) {
            std::vector<std::size_t> shown(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(keys));
            std::size_t used = 0;
            for (std::size_t c = first; c < width.size() && (c == first || used + width[c] <= room); ++c) {
                used += width[c] + column_gap;
                shown.push_back(c);
            }
            if (first > keys)
                text += fmt::format(
                    "... same rows, further columns (they fit beside the others on a terminal of {}, or in a file)\n",
                    whole);
            text += lines_of(0, shown);
            for (std::size_t row = begin; row < end; ++row) text += lines_of(row, shown);
            first = shown.back() + 1;
        }
    }
    return text;
}

std::string counted(std::size_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string with_error(double value, double standard_error, int digits, double scale) {
    if (std::isnan(value)) return "-";
    if (std::abs(value) < rounding_level * scale && !(standard_error >= rounding_level * scale)) return "0";
    constexpr double rounding = 1e-13;
    if (!(standard_error > rounding * std::abs(value)) || !std::isfinite(standard_error))
        return fmt::format("{:.{}g}", value, digits);
    const double size = std::max(std::abs(value), standard_error);
    if (size >= 1e9 && std::isfinite(size)) {
        const int power = static_cast<int>(std::floor(std::log10(size)));
        const auto scaled = [&](double x) { return x / std::pow(10.0, power); };
        return fmt::format("{}e+{}", with_error(scaled(value), scaled(standard_error), digits), power);
    }
    int exponent = static_cast<int>(std::floor(std::log10(standard_error)));
    // An error of 0.0996 rounds to 0.10, so one place fewer leaves two digits.
    if (std::round(standard_error * std::pow(10.0, 1 - exponent)) >= 100.0) ++exponent;
    const int places = std::max(0, 1 - exponent);
    const double units = std::round(standard_error * std::pow(10.0, places));
    return fmt::format("{:.{}f}({:.0f})", value, places, units);
}

std::string percentage(double probability) {
    const double percent = 100.0 * probability;
    for (int digits = 6; digits < 17; ++digits) {
        std::string text = fmt::format("{:.{}g}", percent, digits);
        const bool whole = text == "100" && probability < 1.0;
        if (!whole && std::abs(std::stod(text) - percent) <= 1e-13 * percent) return text;
    }
    return fmt::format("{:.17g}", percent);
}

std::string number(double value, int digits) { return std::isnan(value) ? "-" : fmt::format("{:.{}g}", value, digits); }

std::string standard_errors(double count) {
    return count > 100.0 ? "more than 100 standard errors" : fmt::format("{:.1f} standard errors", count);
}

std::string limits_text(double fewest, double most) {
    if (std::isnan(fewest) || std::isnan(most)) return "";
    const auto range = [](double low, double high) {
        const std::string first = fmt::format("{:.3g}", low);
        const std::string last = fmt::format("{:.3g}", high);
        return first == last ? first : first + " to " + last;
    };
    return fmt::format("{} degree{} of freedom: 95 % limits {} standard errors away", range(fewest, most),
                       most == 1.0 ? "" : "s",
                       range(validation::limits_in_errors(most), validation::limits_in_errors(fewest)));
}

std::string errors_sentence(std::string_view cluster, std::string_view drawn) {
    constexpr std::string_view text = "Random in these errors: {}, with their {}{}. Fixed: the model{}.";
    if (cluster == "head") return fmt::format(text, "layers and heads", "blocks and ", drawn, ", its texts");
    if (cluster == "prompt") return fmt::format(text, "prompts", "", drawn, ", its layers and heads");
    if (cluster == "document") return fmt::format(text, "documents", "", drawn, "");
    return "";
}

std::string method_at(const std::string& method, const std::optional<double>& budget) {
    return budget ? fmt::format("{} at {:g}", method, *budget) : method;
}

std::string with_digits(double value, int digits) {
    if (!std::isfinite(value) || value == 0.0) return number(value);
    const double rounds_to_units = std::pow(10.0, digits - 1) - 0.05;
    if (std::abs(value) >= rounds_to_units && std::abs(value) < 1e7) return fmt::format("{:.0f}", value);
    std::string text = fmt::format("{:#.{}g}", value, digits);
    if (text.ends_with('.')) text.pop_back();
    return text;
}

std::string four_digits(double value) { return with_digits(value, 4); }

}  // namespace spiked::reports
