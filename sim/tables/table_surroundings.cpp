#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime/error.hpp"
#include "sim/tables/table_cells.hpp"
#include "sim/tables/table_dialect.hpp"

// What surrounds the rows of a table: headers and rows that begin like comments, the ends of MATLAB's rows, the marks
// of printed tables, and rows and columns of numbers that may be no data.

namespace spiked::sim {
namespace {

/// Whether a line names the columns: it has as many cells as the row, and none is a number.
bool names_columns(std::string_view line, std::string_view row, char delimiter) {
    const auto names = summary_of(line, delimiter, std::nullopt);
    const auto cells = summary_of(row, delimiter, std::nullopt);
    // MM may be the month.
    const bool named = names.words > 0 && names.words + names.missing == names.cells;
    return names.cells > 1 && named && cells.cells == names.cells && cells.numbers > 0;
}

/// The last comment in front of the rows names the columns where its first cell is '#', or where what is behind its
/// mark does.
void take_hash_header(std::vector<TextLine>& sample, std::vector<TextLine>& hashed) {
    if (hashed.empty() || hashed.back().number + 1 != sample.front().number) return;
    const std::string_view text = hashed.back().text;
    const std::string_view row = sample.front().text;
    const std::size_t begin = text.find_first_not_of(" ");
    const std::size_t mark = comment_mark(text.substr(begin));
    if (text[begin] == '@') return;
    for (const char delimiter : {'\t', ',', ';', '|', ' '}) {
        if (delimiter != ' ' && row.find(delimiter) == row.npos) continue;
        const std::string_view behind = text.substr(begin + mark);
        const bool alone = text[begin] == '#' && delimiter != ' ' && behind.starts_with(delimiter);
        const bool taken =
            alone ? count_cells(text, delimiter) == count_cells(row, delimiter) : names_columns(behind, row, delimiter);
        if (!taken) continue;
        TextLine header{std::string(alone ? text : behind), hashed.back().number};
        sample.insert(sample.begin(), std::move(header));
        hashed.pop_back();
        return;
    }
}

/// Where all names begin like comments, only the header is in the sample.
void take_hash_rows(std::vector<TextLine>& sample, std::vector<TextLine>& hashed) {
    if (sample.size() != 1 || begins_number(sample.front().text)) return;
    for (const char delimiter : {'\t', ';', '|', ','}) {
        const std::size_t cells = count_cells(sample.front().text, delimiter);
        const auto is_row = [&](const TextLine& line) {
            return line.number < sample.front().number || count_cells(line.text, delimiter) == cells;
        };
        if (cells < 2 || !std::all_of(hashed.begin(), hashed.end(), is_row)) continue;
        const auto behind = std::find_if(hashed.begin(), hashed.end(),
                                         [&](const TextLine& line) { return line.number > sample.front().number; });
        sample.insert(sample.end(), behind, hashed.end());
        hashed.erase(behind, hashed.end());
        return;
    }
}

}  // namespace

void take_hashed_lines(std::vector<TextLine>& sample, std::vector<TextLine>& hashed) {
    take_hash_rows(sample, hashed);
    take_hash_header(sample, hashed);
}

bool strip_row_ends(std::vector<TextLine>& lines) {
    const auto has_end = [](const TextLine& line) {
        const std::size_t at = line.text.find(';');
        return at != line.text.npos && line.text.find_first_not_of(" \t", at + 1) == line.text.npos;
    };
    if (!std::all_of(lines.begin(), lines.end(), has_end)) return false;
    for (auto& line : lines) line.text.erase(line.text.find(';'));
    return true;
}

std::string without_bars(std::string_view line) {
    std::string inside(line);
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t end = line.find_last_not_of(" \t");
    if (begin < end && line[begin] == '|' && line[end] == '|') inside[begin] = inside[end] = ' ';
    return inside;
}

bool strip_bars(std::vector<TextLine>& lines) {
    const auto has_bars = [](const TextLine& line) { return without_bars(line.text) != line.text; };
    if (!std::all_of(lines.begin(), lines.end(), has_bars)) return false;
    for (auto& line : lines) line.text = without_bars(line.text);
    return true;
}

std::optional<double> printed_factor(std::string_view line) {
    const std::size_t end = line.find_last_not_of(" \t");
    if (end == line.npos || line[end] != '*') return std::nullopt;
    const auto factor = summary_of(line.substr(0, end), ' ', '.');
    if (factor.cells != 1 || factor.numbers != 1 || factor.first.find('e') == std::string::npos) return std::nullopt;
    return std::isfinite(factor.last_number) ? std::optional(factor.last_number) : std::nullopt;
}

bool names_variable(std::string_view line) {
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t end = line.find_last_not_of(" \t");
    if (end != line.npos && line.substr(0, end + 1).ends_with("}:"))
        return line.find("Matrix{") != line.npos || line.find("Array{") != line.npos;
    if (end == line.npos || line[end] != '=' || begin == end || begins_number(line.substr(begin))) return false;
    return line.substr(begin, line.find_last_not_of(" \t", end - 1) + 1 - begin).find_first_of(" \t,;|=") == line.npos;
}

namespace {

/// Cells that stand for others where a program prints a part of a table.
bool stands_for_others(std::string_view cell) {
    static constexpr std::string_view marks[] = {"...", "\u2026", "\u22EE", "\u22EF", "\u22F1"};
    return std::find(std::begin(marks), std::end(marks), cell) != std::end(marks);
}

}  // namespace

void reject_printed_part(const std::string& path, const TextLine& line) {
    std::string_view text = line.text;
    text = text.substr(0, text.find_last_not_of(" ") + 1);
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    // pandas writes .. for narrow columns, and the size of the table below it; tibbles of R end with a comment.
    bool shortened = (has("..") && text.find_first_not_of(". ") == text.npos) || has("getOption(\"max.print\")") ||
                     (has(" rows x ") && text.ends_with("columns]")) || text.starts_with("# \u2026 with ") ||
                     text.starts_with("# ... with ") || text.starts_with("# \u2139 ");
    bool names = true, rule = true;
    std::size_t cells = 0;
    each_cell(text, ' ', [&](const TableCell& cell) {
        shortened = shortened || (stands_for_others(cell.text) && !text.starts_with('#'));
        names = names && cell.text.starts_with("[,") && cell.text.ends_with(']') && cell.text != "[,1]";
        rule = rule && cell.text.find_first_not_of("-=_+:|") == cell.text.npos && cell.text.size() > 2;
        return ++cells < cells_looked_at;
    });
    if (shortened)
        throw input_error(
            "{}:{}: rows or columns are left out here (as where pandas, NumPy or R print a part of a large table): "
            "save the whole table, for example with to_csv, numpy.savetxt or write.csv",
            path, line.number);
    // MATLAB and Octave write "Columns 1 through 8" above each part.
    const bool numbered = has("Columns ") && (has(" through ") || has(" and "));
    if (names || numbered || text.ends_with(" \\"))
        throw input_error(
            "{}:{}: the columns are printed in several parts (as R, pandas and MATLAB do where a line is too short for "
            "all): save the table, for example with write.csv or to_csv",
            path, line.number);
    const std::size_t begin = std::min(text.find_first_not_of(" "), text.size());
    if (has("\u2502") || has("\u250C") || has("\u2506"))
        throw input_error("{}:{}: a printed table (its lines are drawn): save the table, for example with write_csv",
                          path, line.number);
    const bool title = begin + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[begin + 1])) != 0;
    if (text.substr(begin).starts_with("- ["))
        throw input_error("{}:{}: a list of YAML: sed -e 's/^ *- *[[]//' -e 's/[]]//' FILE > x.csv", path, line.number);
    if (text.substr(begin).starts_with("[") && !text.substr(begin).starts_with("[,") && !title && text.ends_with("]"))
        throw input_error("{}:{}: brackets, as NumPy prints an array: save it with numpy.save, or leave them out", path,
                          line.number);
    if ((text.ends_with("\\\\") && has("&")) || has("\\hline") || has("\\begin{") || has("\\toprule"))
        throw input_error(
            "{}:{}: a table of LaTeX: sed -e 's/&/,/g' -e 's/[$]//g' -e 's/\\\\.*//' -e '/^[[:blank:]]*$/d' FILE > "
            "x.csv",
            path, line.number);
    if (has(" = [") || has(" = {"))
        throw input_error(
            "{}:{}: a command of a program, as of MATLAB: run it there and save the matrix, or leave out what is no "
            "number: sed -e 's/.*[[]//' -e 's/[]].*//' -e 's/; */\\n/g' FILE > x.txt",
            path, line.number);
    if (text.starts_with("<<<<<<< "))
        throw input_error("{}:{}: a conflict of git that is not resolved: resolve it", path, line.number);
    if (rule)
        throw input_error("{}:{}: a rule, not numbers: leave it out, and what is below it too where it holds totals",
                          path, line.number);
}

void LongKeys::add(std::size_t cell, std::string_view text) {
    keys_[cell].push_back(std::hash<std::string_view>{}(text));
    times_ = times_ || is_date_or_time(text);
}

bool LongKeys::are_places() const {
    const std::size_t rows = keys_[0].size();
    if (times_ || rows < 4 || keys_[1].size() != rows) return false;
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < rows; ++i) pairs.emplace_back(keys_[0][i], keys_[1][i]);
    std::sort(pairs.begin(), pairs.end());
    if (std::adjacent_find(pairs.begin(), pairs.end()) != pairs.end()) return false;
    const auto repeats = [&](std::vector<std::size_t> keys) {
        std::sort(keys.begin(), keys.end());
        return 2 * static_cast<std::size_t>(std::unique(keys.begin(), keys.end()) - keys.begin()) <= rows;
    };
    return repeats(keys_[0]) && repeats(keys_[1]);
}

bool holds_places(const arma::mat& rows) {
    if (rows.n_cols < 3 || rows.n_cols > 4 || rows.n_rows < 4) return false;
    const auto is_whole = [](double value) { return value >= 0.0 && value == std::floor(value); };
    const auto is_place = [&](const auto& column) { return std::all_of(column.begin(), column.end(), is_whole); };
    if (!is_place(rows.unsafe_col(0)) || !is_place(rows.unsafe_col(1))) return false;
    std::vector<std::pair<double, double>> pairs;
    for (std::size_t i = 0; i < rows.n_rows; ++i) pairs.emplace_back(rows(i, 0), rows(i, 1));
    const auto swapped = [](const auto& a, const auto& b) {
        return std::pair(a.second, a.first) < std::pair(b.second, b.first);
    };
    const bool sorted =
        std::is_sorted(pairs.begin(), pairs.end()) || std::is_sorted(pairs.begin(), pairs.end(), swapped);
    // Columns of whole numbers without an order are often counts; a fourth one of times tells a list of events.
    const double time = 1e8;  // seconds since 1970
    const bool times = rows.n_cols == 4 && is_place(rows.unsafe_col(3)) && rows.unsafe_col(3).min() >= time;
    if (!sorted && !times && is_place(arma::vec(arma::vectorise(rows.tail_cols(rows.n_cols - 2))))) return false;
    std::sort(pairs.begin(), pairs.end());
    if (std::adjacent_find(pairs.begin(), pairs.end()) != pairs.end()) return false;
    // Places share rows and columns.
    const auto repeats = [](arma::vec numbers) {
        std::sort(numbers.begin(), numbers.end());
        return std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
    };
    return repeats(rows.col(0)) && repeats(rows.col(1));
}

namespace {

/// 0, 1, 2, ... or 1, 2, 3, ...
template <class Line>
bool counts_on(const Line& line) {
    for (std::size_t i = 0; i < line.n_elem; ++i)
        if (line[i] != line[0] + static_cast<double>(i)) return false;
    return line.n_elem > 2 && (line[0] == 0.0 || line[0] == 1.0);
}

template <class Line>
bool is_even(const Line& line) {
    constexpr double rounding = 0.05;  // of a step
    if (line.n_elem < 4) return false;
    const double step = line[1] - line[0];
    for (std::size_t i = 1; i < line.n_elem; ++i)
        if (!(step != 0.0 && std::abs(line[i] - line[i - 1] - step) <= rounding * std::abs(step))) return false;
    return true;
}

/// Whether the first row is like a second header: it counts, or its whole numbers stand above fractions and increase or
/// stand below names that repeat.
bool begins_with_header(const arma::mat& rows, bool repeated_names) {
    const auto first = rows.row(0);
    if (rows.n_rows < 2 || rows.n_cols < 3) return false;
    if (counts_on(first)) return rows(1, 0) != first[rows.n_cols - 1] + 1.0;
    const auto is_whole = [](double value) { return value == std::floor(value); };
    for (std::size_t j = 0; j < rows.n_cols; ++j)
        if (!is_whole(first[j]) || (!repeated_names && j > 0 && !(first[j] > first[j - 1]))) return false;
    for (std::size_t i = 1; i < std::min<std::size_t>(rows.n_rows, 64); ++i) {
        const arma::rowvec row = rows.row(i);
        if (2 * std::count_if(row.begin(), row.end(), is_whole) > static_cast<std::ptrdiff_t>(rows.n_cols))
            return false;
    }
    return rows.n_rows > 3;
}

enum class LastLine { data, sum, mean };

/// Whether the last row (column) is the sum or the mean of the others; it is compared in every column (row).
LastLine last_line(const arma::mat& matrix, bool rows) {
    const std::size_t length = rows ? matrix.n_rows : matrix.n_cols;
    const std::size_t lines = rows ? matrix.n_cols : matrix.n_rows;
    constexpr double rounding = 1e-9;          // of the sum of magnitudes
    constexpr double rounding_of_mean = 1e-3;  // of the range, since a mean has more digits than are written
    if (length < 4 || lines < 2) return LastLine::data;
    bool sum = true, mean = lines > 2, any = false;
    for (std::size_t line = 0; line < lines && (sum || mean); ++line) {
        const auto entry = [&](std::size_t i) { return rows ? matrix(i, line) : matrix(line, i); };
        double total = 0.0, size = 0.0, least = entry(0), most = least;
        for (std::size_t i = 0; i + 1 < length; ++i) {
            total += entry(i);
            size += std::abs(entry(i));
            least = std::min(least, entry(i));
            most = std::max(most, entry(i));
        }
        const double last = entry(length - 1);
        any = any || last != 0.0;
        sum = sum && std::abs(last - total) <= rounding * size;
        mean =
            mean && std::abs(last - total / (static_cast<double>(length) - 1.0)) <= rounding_of_mean * (most - least);
    }
    if (!any) return LastLine::data;
    return sum ? LastLine::sum : mean ? LastLine::mean : LastLine::data;
}

}  // namespace

std::vector<std::string> doubtful_lines(const arma::mat& rows, std::size_t in_front, bool header, bool repeated_names) {
    std::vector<std::string> found;
    const std::size_t last = rows.n_cols - 1;
    // The first column of the file is judged where the form of the table is.
    for (std::size_t j = in_front > 0 ? 0 : 1; j < rows.n_cols; ++j)
        if (counts_on(rows.unsafe_col(j)))
            found.push_back(
                fmt::format("its column {} counts the rows and is read as data (leave it out where it is an index)",
                            j + 1 + in_front));
        else if (j == last && j > 0 && is_even(rows.unsafe_col(j)) && !is_even(rows.unsafe_col(0)))
            found.emplace_back(
                "its last column is evenly spaced and is read as data (leave it out where it is an index)");
    if (header && begins_with_header(rows, repeated_names))
        found.push_back(fmt::format(
            "its first row below the header holds whole numbers{} and is read as data (leave it out where it is a "
            "second header)",
            begins_with_header(rows, false) ? " that increase" : ", unlike the others,"));
    return found;
}

std::string last_line_note(const arma::mat& matrix, bool rows) {
    const LastLine kind = last_line(matrix, rows);
    if (kind == LastLine::data) return "";
    return fmt::format(
        "its last {0} is the {1} of the other {0}s and is read as data (leave it out where it is no data)",
        rows ? "row" : "column", kind == LastLine::sum ? "sum" : "mean");
}

}  // namespace spiked::sim
