#include "sim/tables/table_dialect.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/tables/first_line.hpp"
#include "sim/tables/table_cells.hpp"
#include "sim/tables/table_rejections.hpp"

namespace spiked::sim {
namespace {

/// Whether it is a number such as 1.234,5 or 1,234.5.
bool has_two_marks(std::string_view text) {
    const std::size_t last = text.find_last_of(".,");
    if (last == text.npos || !is_digits(text.substr(last + 1))) return false;
    return has_thousands(text.substr(0, last), text[last] == ',' ? '.' : ',');
}

/// How well the lines become rows of numbers when they are cut at this delimiter, from 0 to 1; 0 for single cells.
double fit_of(const std::vector<std::string_view>& lines, char delimiter, std::optional<char> decimal) {
    double good = 0.0;
    std::size_t cells = 0;
    std::size_t first_cells = 0;
    bool ragged = false;
    for (const auto line : lines) {
        const auto found = summary_of(line, delimiter, decimal, 0, cells_looked_at);
        // Cells that are neither numbers nor words are missing values.
        good +=
            static_cast<double>(found.numbers) + 0.75 * static_cast<double>(found.cells - found.words - found.numbers);
        if (found.cells > 1)
            each_cell(line, delimiter, [&](const TableCell& cell) {
                good += has_two_marks(cell.text) ? 1.0 : 0.0;
                return true;
            });
        if (found.words > 0 && found.first_kind == CellKind::text) good += 0.5;
        if (first_cells == 0) first_cells = found.cells;
        ragged = ragged || found.cells != first_cells;
        cells += found.cells;
    }
    if (cells <= lines.size()) return 0.0;
    return good / static_cast<double>(cells) * (ragged ? 0.5 : 1.0);
}

bool any_has(const std::vector<std::string_view>& lines, char c) {
    return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) { return line.find(c) != line.npos; });
}

/// Whether tabs separate cells in which blanks separate thousands, or which are empty in some lines only: cut at any
/// blanks, such lines may be rows of other numbers. Lines whose numbers of tabs differ were aligned with them.
bool needs_tabs(const std::vector<std::string_view>& lines) {
    const auto tabs = [](std::string_view line) { return std::count(line.begin(), line.end(), '\t'); };
    if (lines.empty() || tabs(lines.front()) == 0) return false;
    const auto has_as_many = [&](std::string_view line) { return tabs(line) == tabs(lines.front()); };
    if (!std::all_of(lines.begin(), lines.end(), has_as_many)) return false;
    std::vector<std::size_t> filled;  // the number of lines with a number in this cell
    bool thousands = false;
    for (const auto line : lines) {
        std::size_t i = 0;
        each_cell(line, '\t', [&](const TableCell& cell) {
            filled.resize(std::max(filled.size(), i + 1));
            filled[i] += !cell.text.empty();
            thousands = thousands || has_thousands(cell.text.substr(0, cell.text.find_first_of(".,")), ' ');
            return ++i < cells_looked_at;
        });
    }
    const auto in_some = [&](std::size_t count) { return count > 0 && count < lines.size(); };
    return thousands || std::any_of(filled.begin(), filled.end(), in_some);
}

/// The delimiter at which the lines of data become rows of numbers, and the first line has as many cells, or one fewer.
char delimiter_of(std::string_view first, const std::vector<std::string_view>& lines, const TableDialect& given) {
    if (given.delimiter) return *given.delimiter;
    if (needs_tabs(lines)) return '\t';
    // The comma stands behind those for which it may be a decimal mark.
    char best = given.decimal == ',' ? ';' : ',';
    double best_fit = 0.0;
    for (const char delimiter : {'\t', ';', '|', ',', ' '}) {
        if (delimiter == ',' && given.decimal == ',' && !any_has(lines, '"')) continue;
        if (delimiter != ' ' && !any_has(lines, delimiter)) continue;
        double fit = fit_of(lines, delimiter, given.decimal);
        const std::size_t cells = count_cells(lines.front(), delimiter, cells_looked_at);
        const std::size_t first_cells = count_cells(first, delimiter, cells_looked_at);
        if (fit > 0.0) fit += first_cells == cells ? 0.1 : first_cells + 1 == cells ? 0.05 : 0.0;
        if (fit > best_fit) {
            best_fit = fit;
            best = delimiter;
        }
    }
    return best;
}

std::optional<char> decimal_of(const std::string& path, const MarksSeen& seen, char delimiter,
                               const TableDialect& given) {
    if (given.decimal) return given.decimal;
    if (!seen.comma.empty() && !seen.point.empty())
        throw input_error(
            "{}: numbers with commas and with points (such as {} and {}; one separates decimals, the other perhaps "
            "thousands): write them with one mark and without separators of thousands",
            path, in_quotes(seen.comma), in_quotes(seen.point));
    if (seen.comma.empty() && seen.point.empty()) return std::nullopt;
    const char mark = seen.comma.empty() ? '.' : ',';
    // Only where semicolons separate cells do points separate thousands.
    if (seen.only_thousands && (mark == ',' || delimiter == ';'))
        reject_thousands(path, mark == ',' ? seen.comma : seen.point, mark);
    return mark;
}

/// Throws for commas that may be delimiters as well as decimal marks.
void reject_ambiguous_commas(const std::string& path, const std::vector<std::string_view>& lines,
                             const TableDialect& given) {
    if (given.delimiter || given.decimal) return;
    bool paired = true;   // "1,5, 2,5": every other comma has a blank behind it
    bool single = true;   // "1,5": one comma between digits
    bool padded = false;  // "1,05": zeros in front of another digit, which are not written in front of a whole number
    for (const auto line : lines) {
        std::size_t commas = 0;
        for (std::size_t at = 0; (at = line.find(',', at)) != line.npos && commas < cells_looked_at; ++at) {
            const bool blank = at + 1 < line.size() && line[at + 1] == ' ';
            paired = paired && blank == (commas % 2 == 1);
            ++commas;
        }
        paired = paired && commas >= 3 && commas % 2 == 1;
        single = single && commas == 1 && line.find('.') == line.npos && number_with_comma(line);
        const std::size_t behind = line.find(",0");
        padded = padded || (behind != line.npos && behind + 2 < line.size() && is_digits(line.substr(behind + 2, 1)));
    }
    if (paired)
        throw input_error(
            "{}: commas with and without a blank behind them (they may be decimal marks and delimiters): write "
            "semicolons between cells, or say --delimiter comma if each comma separates two cells",
            path);
    if (single && (padded || (!lower_case(path).ends_with(".csv") && !lower_case(path).ends_with(".csv.gz"))))
        throw input_error(
            "{}: lines such as {} can be read in two ways (two cells, or one number with a decimal comma): say "
            "--delimiter comma or --decimal comma",
            path, in_quotes(lines.front()));
}

/// The number of empty cells at the end of each line that has all the cells, at least 1.
std::size_t empty_ends(const std::vector<TextLine>& lines, char delimiter, std::size_t columns) {
    std::size_t least = columns;
    for (const auto& line : lines) {
        std::size_t cells = 0;
        std::size_t empty = 0;
        each_cell(line.text, delimiter, [&](const TableCell& cell) {
            ++cells;
            empty = cell.text.empty() ? empty + 1 : 0;
            return true;
        });
        if (cells == columns) least = std::min(least, empty);
    }
    return std::clamp<std::size_t>(least, 1, columns - 1);
}

/// The number of cells that most lines have, or the first ones among equals.
std::size_t usual_cells(const std::vector<std::string_view>& lines, char delimiter) {
    std::vector<std::size_t> counts;
    for (const auto line : lines) counts.push_back(count_cells(line, delimiter));
    return *std::max_element(counts.begin(), counts.end(), [&](std::size_t a, std::size_t b) {
        return std::count(counts.begin(), counts.end(), a) < std::count(counts.begin(), counts.end(), b);
    });
}

}  // namespace

TableForm recognise_table(const std::string& path, const std::vector<TextLine>& lines, const TableDialect& given,
                          bool counts) {
    TableForm form;
    const auto data = data_lines(lines);
    form.delimiter = delimiter_of(lines.front().text, data, given);
    // A list of two columns has no single numbers with a comma.
    if (form.delimiter == ',' && counts) reject_ambiguous_commas(path, data, given);
    MarksSeen seen = marks_in(data, form.delimiter);
    seen.only_thousands = seen.only_thousands && marks_in({lines.front().text}, form.delimiter).only_thousands;
    form.decimal = decimal_of(path, seen, form.delimiter, given);
    form.columns = usual_cells(data, form.delimiter);
    form.trailing = std::all_of(data.begin(), data.end(),
                                [&](std::string_view line) { return ends_with_delimiter(line, form.delimiter); });
    if (form.trailing) {
        const auto first = summary_of(lines.front().text, form.delimiter, form.decimal);
        // A header that names the last column shows that its cells are missing.
        form.trailing = form.columns > 1 && (ends_with_delimiter(lines.front().text, form.delimiter) ||
                                             (first.words > 0 && first.cells < form.columns));
        if (form.trailing) form.columns -= empty_ends(lines, form.delimiter, form.columns);
    }
    for (const auto line : data) {
        const auto row = summary_of(line, form.delimiter, form.decimal, 0, cells_looked_at);
        form.quoted = form.quoted || row.quoted > (row.first_quoted ? 1 : 0);
    }
    decide_first_line(path, lines, given, counts, seen, form);
    if (!form.header && !form.trailing) {
        auto all = data;
        if (lines.size() > 1) all.insert(all.begin(), lines.front().text);
        // Fewer cells than the names of a row take are a row that is too short, not the usual one.
        if (const std::size_t usual = usual_cells(all, form.delimiter); usual > form.index) form.columns = usual;
    }
    return form;
}

}  // namespace spiked::sim
