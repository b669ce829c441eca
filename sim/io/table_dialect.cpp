#include "sim/io/table_dialect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/table_cells.hpp"

namespace spiked::sim {
namespace {

/// So many cells of a line tell its form.
constexpr std::size_t cells_looked_at = 4096;

enum class CellKind { number, missing, text };

/// What a cell is where the decimal mark may still be either. Of a comma between blanks only one between digits is a
/// decimal mark.
CellKind kind_of_cell(const TableCell& cell, char delimiter, std::optional<char> decimal) {
    if (is_missing(cell.text)) return CellKind::missing;
    if (decimal.value_or('.') == '.' && number_with_point(cell.text)) return CellKind::number;
    if (decimal.value_or(',') != ',') return CellKind::text;
    const bool loose = delimiter == ' ' && (cell.text.front() == ',' || cell.text.back() == ',');
    return !loose && number_with_comma(cell.text) ? CellKind::number : CellKind::text;
}

/// Whether it begins like a number: a word that does may be a damaged number.
bool begins_number(std::string_view text) { return text.find_first_of("0123456789+-.") == 0; }

/// The cells of a line by kinds.
struct LineSummary {
    std::size_t cells = 0;
    std::size_t numbers = 0;
    std::size_t words = 0;
    std::size_t like_numbers = 0;  ///< words without quotes that begin like numbers
    std::size_t quoted = 0;        ///< numbers in quotes
    std::size_t digits = 0;        ///< numbers written with digits only
    std::size_t missing = 0;       ///< but not empty
    bool counts = true;            ///< the cells are 0, 1, 2, ... or 1, 2, 3, ...
    double first_number = -1;      ///< of the cells that count
    std::string first;             ///< the first cell
    CellKind first_kind = CellKind::missing;
    bool first_quoted = false;
};

/// The line from its cell `from` on. `limit` is for lines of data, of which some cells tell the form.
LineSummary summary_of(std::string_view line, char delimiter, std::optional<char> decimal, std::size_t from = 0,
                       std::size_t limit = std::string_view::npos) {
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
        found.numbers += kind == CellKind::number;
        found.quoted += kind == CellKind::number && cell.quoted;
        found.words += kind == CellKind::text;
        found.like_numbers += kind == CellKind::text && !cell.quoted && begins_number(cell.text);
        found.digits += kind == CellKind::number && digits;
        found.missing += kind == CellKind::missing && !cell.text.empty();
        return ++found.cells < limit;
    });
    return found;
}

/// The lines behind the first one; the first one itself where there is no other.
std::vector<std::string_view> data_lines(const std::vector<TextLine>& lines) {
    std::vector<std::string_view> data;
    for (std::size_t i = lines.size() > 1 ? 1 : 0; i < lines.size(); ++i) data.push_back(lines[i].text);
    return data;
}

/// How well the lines become rows of numbers when they are cut at this delimiter, from 0 to 1; 0 for single cells.
double fit_of(const std::vector<std::string_view>& lines, char delimiter, std::optional<char> decimal) {
    double good = 0.0;
    std::size_t cells = 0;
    std::size_t first_cells = 0;
    bool ragged = false;
    for (const auto line : lines) {
        const auto found = summary_of(line, delimiter, decimal, 0, cells_looked_at);
        // An empty cell at the end of the line is a trailing delimiter.
        good += static_cast<double>(found.numbers) + 0.75 * static_cast<double>(found.cells - found.words) -
                0.75 * static_cast<double>(found.numbers);
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

/// The delimiter at which the lines of data become rows of numbers, and the first line has as many cells, or one fewer.
char delimiter_of(std::string_view first, const std::vector<std::string_view>& lines, const TableDialect& given) {
    if (given.delimiter) return *given.delimiter;
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

/// What the numbers of the first lines show about the decimal mark.
struct MarksSeen {
    std::string point;           ///< the first number with a decimal point
    std::string comma;           ///< the first number with a decimal comma
    bool only_thousands = true;  ///< all commas may separate thousands
    std::size_t numbers = 0;
    std::size_t digits = 0;  ///< numbers written with digits only
};

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
            if (comma && !has_thousands(cell.text, ',')) seen.only_thousands = false;
            seen.numbers += point || comma || number_with_point(cell.text);
            seen.digits += is_digits(cell.text);
            return ++cells < cells_looked_at;
        });
    }
    return seen;
}

std::optional<char> decimal_of(const std::string& path, const MarksSeen& seen, char delimiter,
                               const TableDialect& given) {
    if (given.decimal) return given.decimal;
    if (!seen.comma.empty() && !seen.point.empty())
        throw input_error(
            "{}: numbers with commas and with points (such as {} and {}; one separates decimals, the other perhaps "
            "thousands): write them with one mark and without separators of thousands",
            path, in_quotes(seen.comma), in_quotes(seen.point));
    if (seen.comma.empty()) return seen.point.empty() ? std::nullopt : std::optional('.');
    // Where semicolons separate cells, commas separate decimals: that is why the semicolons are there.
    if (seen.only_thousands && delimiter != ';')
        throw input_error(
            "{}: numbers such as {} can be read in two ways (the comma may separate decimals or thousands): say "
            "--decimal comma, or write them without separators of thousands",
            path, in_quotes(seen.comma));
    return ',';
}

/// Throws for commas that may be delimiters as well as decimal marks.
void reject_ambiguous_commas(const std::string& path, const std::vector<std::string_view>& lines,
                             const TableDialect& given) {
    if (given.delimiter || given.decimal) return;
    bool paired = true;  // "1,5, 2,5": every other comma has a blank behind it
    bool single = true;  // "1,5": one comma between digits
    for (const auto line : lines) {
        std::size_t commas = 0;
        for (std::size_t at = 0; (at = line.find(',', at)) != line.npos && commas < cells_looked_at; ++at) {
            const bool blank = at + 1 < line.size() && line[at + 1] == ' ';
            paired = paired && blank == (commas % 2 == 1);
            ++commas;
        }
        paired = paired && commas >= 3 && commas % 2 == 1;
        single = single && commas == 1 && line.find('.') == line.npos && number_with_comma(line);
    }
    if (paired)
        throw input_error(
            "{}: commas with and without a blank behind them (they may be decimal marks and delimiters): write "
            "semicolons between cells, or say --delimiter comma if each comma separates two cells",
            path);
    if (single && !has_suffix(path, ".csv") && !has_suffix(path, ".csv.gz"))
        throw input_error(
            "{}: lines such as {} can be read in two ways (two cells, or one number with a decimal comma): say "
            "--delimiter comma or --decimal comma",
            path, in_quotes(lines.front()));
}

bool ends_with_delimiter(std::string_view line, char delimiter) {
    const std::size_t last = line.find_last_not_of(delimiter == '\t' ? " " : " \t");
    return delimiter != ' ' && last != line.npos && line[last] == delimiter;
}

/// The number of cells that most lines have, or the first ones among equals.
std::size_t usual_cells(const std::vector<std::string_view>& lines, char delimiter) {
    std::vector<std::size_t> counts;
    for (const auto line : lines) counts.push_back(count_cells(line, delimiter));
    return *std::max_element(counts.begin(), counts.end(), [&](std::size_t a, std::size_t b) {
        return std::count(counts.begin(), counts.end(), a) < std::count(counts.begin(), counts.end(), b);
    });
}

std::string counting_text(const LineSummary& line) {
    const auto first = static_cast<int>(line.first_number);
    std::string text = std::to_string(first);
    for (std::size_t i = 1; i < std::min<std::size_t>(3, line.cells); ++i)
        text += ", " + std::to_string(first + static_cast<int>(i));
    return text + (line.cells > 3 ? ", ..." : "");
}

/// The first line of a table and what is known of the lines below.
class FirstLine {
public:
    FirstLine(const std::string& path, const std::vector<TextLine>& lines, const TableDialect& given, bool counts,
              const MarksSeen& seen, TableForm& form)
        : path_(path), lines_(lines), given_(given), counts_(counts), seen_(seen), form_(form) {}

    void decide() {
        const std::string_view line = first_line();
        const auto whole = summary_of(line, form_.delimiter, form_.decimal);
        const std::size_t cells = whole.cells;
        const bool names = first_column_is_names();
        const bool unnamed = whole.first.empty() || whole.first.starts_with("Unnamed: ");
        const bool lacks_one = cells + 1 == form_.columns && lines_.size() > 1;
        const auto rest =
            (names && !lacks_one) || unnamed ? summary_of(line, form_.delimiter, form_.decimal, 1) : whole;
        if (given_.header)
            form_.header = *given_.header;
        else
            form_.header = lines_.size() > 1 ? is_header(whole, rest, unnamed, names)
                                             : whole.words == whole.cells && whole.like_numbers == 0;
        if (form_.header) form_.first_name = whole.first;
        if (form_.header && cells != form_.columns && !lacks_one)
            throw input_error("{}:{}: the header has {} {} (line {} has {}): correct the header, or leave it out",
                              path_, lines_.front().number, cells, cells == 1 ? "cell" : "cells", number_of_second(),
                              form_.columns);
        if (form_.header && lacks_one && !given_.index) reject_lone_header(names);
        form_.index = given_.index.value_or(names || (form_.header && (lacks_one || (unnamed && form_.columns > 1))));
        form_.may_count = !given_.index && !form_.index && counts_ && form_.columns > 1;
    }

private:
    /// Without the delimiter at its end where the rows have one.
    [[nodiscard]] std::string_view first_line() const {
        const std::string_view line = lines_.front().text;
        if (!form_.trailing || !ends_with_delimiter(line, form_.delimiter)) return line;
        return line.substr(0, line.rfind(form_.delimiter));
    }
    [[nodiscard]] std::size_t number_of_second() const {
        return lines_[std::min<std::size_t>(1, lines_.size() - 1)].number;
    }
    [[nodiscard]] bool fractions() const { return seen_.digits < seen_.numbers; }

    /// More than half of the rows begin with text.
    [[nodiscard]] bool first_column_is_names() const {
        if (form_.columns < 2) return false;
        std::size_t texts = 0;
        const auto data = data_lines(lines_);
        for (const auto line : data) {
            const auto found = summary_of(line, form_.delimiter, form_.decimal, 0, 2);
            texts += found.first_kind == CellKind::text && found.words < found.cells;
        }
        return 2 * texts > data.size();
    }

    /// Whether the line names columns: `rest` are its cells without one for the index.
    bool is_header(const LineSummary& whole, const LineSummary& rest, bool unnamed, bool names) {
        if (rest.cells == 0) return whole.words > 0;
        if (rest.words > 0 && rest.numbers == 0) return unnamed || whole.like_numbers < whole.words;
        if (rest.words > 0) return mixed_header(whole, rest, names);
        if (rest.numbers == 0) return false;
        const bool below = seen_.numbers > 0;
        if (rest.quoted == rest.numbers && rest.missing == 0 && below && !form_.quoted) return true;
        if (unnamed && rest.digits == rest.cells) return true;
        return counts_ && below && counting_header(rest, names);
    }
    /// Words and numbers in one line: a header of years or codes behind the name of the first column, or mostly words.
    [[nodiscard]] bool mixed_header(const LineSummary& whole, const LineSummary& rest, bool names) const {
        if (rest.digits < rest.numbers || rest.missing > 0) return false;
        return 2 * rest.words > rest.cells || (!names && whole.first_kind == CellKind::text && rest.cells > 2);
    }

    /// A first line 0, 1, 2, ... that the next line does not go on with, or whole numbers such as years above
    /// fractions.
    bool counting_header(const LineSummary& rest, bool names) {
        if (rest.digits == rest.cells && !rest.counts && rest.cells > 1 && 2 * seen_.digits < seen_.numbers) {
            form_.guessed = names;
            form_.header_note =
                names ? fmt::format("whole numbers from {} on, --header no reads them as data", rest.first)
                      : "its first line holds whole numbers, unlike the others, and is read as data (--header "
                        "yes: as a header)";
            return names;
        }
        if (!rest.counts || (rest.cells == 1 && (rest.first_number > 0.0 || seen_.digits > 0))) return false;
        const auto next = summary_of(lines_[1].text, form_.delimiter, form_.decimal, names ? 1 : 0, 1);
        if (next.first == std::to_string(static_cast<std::size_t>(rest.first_number) + rest.cells)) return false;
        if ((rest.first_number > 0.0 || rest.cells == 2) && !fractions()) {
            if (rest.first_number == 0.0 || rest.cells > 2)
                form_.header_note = fmt::format(
                    "its first line counts {} and is read as data (--header yes: as a header)", counting_text(rest));
            return false;
        }
        form_.guessed = true;
        form_.header_note = fmt::format("it counts {}; --header no reads it as data", counting_text(rest));
        return true;
    }

    /// Of two columns under one name the first may be an index, or both one number with a decimal comma, or the name a
    /// title.
    void reject_lone_header(bool names) const {
        const auto row = summary_of(lines_[1].text, form_.delimiter, form_.decimal, 0, 2);
        if (form_.columns != 2 || names || row.first_quoted) return;
        if (form_.delimiter != ',' && (row.first == "0" || row.first == "1")) return;
        throw input_error(
            "{}:{}: one name above two cells (the first may be an index{}): say --index yes{}, or leave out the line "
            "where it is a title",
            path_, lines_.front().number, form_.delimiter == ',' ? ", or the comma a decimal mark" : "",
            form_.delimiter == ',' ? " or --decimal comma" : "");
    }

    const std::string& path_;
    const std::vector<TextLine>& lines_;
    const TableDialect& given_;
    bool counts_;
    const MarksSeen& seen_;
    TableForm& form_;
};

}  // namespace

TableForm recognise_table(const std::string& path, const std::vector<TextLine>& lines, const TableDialect& given,
                          bool counts) {
    TableForm form;
    const auto data = data_lines(lines);
    form.delimiter = delimiter_of(lines.front().text, data, given);
    // A list of two columns has no single numbers with a comma.
    if (form.delimiter == ',' && counts) reject_ambiguous_commas(path, data, given);
    const MarksSeen seen = marks_in(data, form.delimiter);
    form.decimal = decimal_of(path, seen, form.delimiter, given);
    form.columns = usual_cells(data, form.delimiter);
    form.trailing = std::all_of(data.begin(), data.end(),
                                [&](std::string_view line) { return ends_with_delimiter(line, form.delimiter); });
    if (form.trailing) {
        const auto first = summary_of(lines.front().text, form.delimiter, form.decimal);
        // A header that names the last column shows that its cells are missing.
        form.trailing = form.columns > 1 && (ends_with_delimiter(lines.front().text, form.delimiter) ||
                                             (first.words > 0 && first.cells < form.columns));
        form.columns -= form.trailing ? 1 : 0;
    }
    for (const auto line : data) {
        const auto row = summary_of(line, form.delimiter, form.decimal, 0, cells_looked_at);
        form.quoted = form.quoted || row.quoted > (row.first_quoted ? 1 : 0);
    }
    FirstLine(path, lines, given, counts, seen, form).decide();
    if (!form.header && !form.trailing) {
        auto all = data;
        if (lines.size() > 1) all.insert(all.begin(), lines.front().text);
        form.columns = usual_cells(all, form.delimiter);
    }
    return form;
}

}  // namespace spiked::sim
