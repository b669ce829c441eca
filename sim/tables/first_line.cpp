#include "sim/tables/first_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/tables/table_rejections.hpp"

namespace spiked::sim {
namespace {

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
        std::size_t name_cells = name_columns(data_lines(lines_), form_.delimiter, form_.decimal, form_.columns);
        form_.quoted_index = name_cells == 0 && given_.index.value_or(true) && only_first_is_quoted();
        if (form_.quoted_index) name_cells = 1;
        const bool names = name_cells > 0;
        const bool unnamed = is_unnamed(whole.first);
        const bool lacks_one = cells + 1 == form_.columns && lines_.size() > 1;
        const auto rest = (names && !lacks_one) || unnamed
                              ? summary_of(line, form_.delimiter, form_.decimal, std::max<std::size_t>(name_cells, 1))
                              : whole;
        if (given_.header)
            form_.header = *given_.header;
        else
            form_.header = lines_.size() > 1 ? is_header(whole, rest, unnamed, names)
                                             : whole.words == whole.cells && whole.like_numbers == 0;
        if (form_.header) form_.first_name = whole.first;
        if (form_.header && form_.delimiter == ' ' && cells + 2 <= form_.columns) {
            reject_preamble_or_triangle();
            throw input_error(
                "{}:{}: the header has {} {} (line {} has {}; a blank within a name parts it): write the names in "
                "quotes or tabs between cells, or leave the line out where it is a title",
                path_, lines_.front().number, cells, cells == 1 ? "cell" : "cells", number_of_row(), form_.columns);
        }
        if (form_.header && cells != form_.columns && !lacks_one) {
            reject_preamble_or_triangle();
            throw input_error("{}:{}: the header has {} {} (line {} has {}): correct the header, or leave {} out",
                              path_, lines_.front().number, cells, cells == 1 ? "cell" : "cells", number_of_row(),
                              form_.columns, number_of_row() > number_of_second() ? "what is above the table" : "it");
        }
        if (form_.header && lacks_one && !given_.index) {
            if (!names) reject_preamble_or_triangle();
            reject_lone_header(names);
        }
        if (names && !given_.index) reject_unread_numbers();
        const bool index =
            given_.index.value_or(names || (form_.header && (lacks_one || (unnamed && form_.columns > 1))));
        form_.index = index ? std::max<std::size_t>(name_cells, 1) : 0;
        form_.quoted_index = form_.quoted_index && !(form_.header && (lacks_one || unnamed));
        if (form_.index == 1 && form_.header && !lacks_one) reject_second_index(line);
        if (form_.header) form_.repeated_names = repeats_a_name(line);
        if (index && form_.header && !given_.index) reject_second_header();
        form_.may_count = !given_.index && !index && counts_ && form_.columns > 1;
    }

private:
    /// Without the delimiter at its end where the rows have one.
    [[nodiscard]] std::string_view first_line() const {
        std::string_view line = lines_.front().text;
        while (form_.trailing && ends_with_delimiter(line, form_.delimiter) &&
               count_cells(line, form_.delimiter) > form_.columns)
            line = line.substr(0, line.rfind(form_.delimiter));
        return line;
    }
    [[nodiscard]] std::size_t number_of_second() const {
        return lines_[std::min<std::size_t>(1, lines_.size() - 1)].number;
    }
    /// The number of the first line that has as many cells as a row of the table.
    [[nodiscard]] std::size_t number_of_row() const {
        for (std::size_t i = 1; i < lines_.size(); ++i)
            if (count_cells(lines_[i].text, form_.delimiter) == form_.columns) return lines_[i].number;
        return number_of_second();
    }
    [[nodiscard]] bool fractions() const { return seen_.digits < seen_.numbers; }
    /// Whether each row begins with a number in quotes and has no other, as R writes names of rows.
    [[nodiscard]] bool only_first_is_quoted() const {
        const auto data = data_lines(lines_);
        return form_.columns > 1 && data.size() > 1 && std::ranges::all_of(data, [&](std::string_view line) {
                   const auto row = summary_of(line, form_.delimiter, form_.decimal, 0, cells_looked_at);
                   return row.first_quoted && row.first_kind == CellKind::number && row.quoted == 1 && row.numbers > 1;
               });
    }
    [[nodiscard]] bool repeats_a_name(std::string_view line) const {
        std::set<std::string_view> names;
        bool twice = false;
        each_cell(line, form_.delimiter, [&](const TableCell& cell) {
            twice = !cell.text.empty() && !names.insert(cell.text).second;
            return !twice && names.size() < cells_looked_at;
        });
        return twice;
    }
    void reject_preamble_or_triangle() const {
        reject_other_shape({path_, given_, lines_, form_, form_.decimal, 0}, lines_.front().number);
    }

    /// Whether the line names columns: `rest` are its cells without one for the index.
    bool is_header(const LineSummary& whole, const LineSummary& rest, bool unnamed, bool names) {
        if (rest.cells == 0) return whole.words > 0;
        if (rest.words > 0 && rest.numbers == 0) return unnamed || whole.like_numbers < whole.words;
        if (rest.words > 0) return mixed_header(whole, rest, names);
        if (rest.numbers == 0) return false;
        if (names && whole.cells + 1 == form_.columns) return true;
        const bool below = seen_.numbers > 0;
        if (rest.quoted == rest.numbers && rest.missing == 0 && below && !form_.quoted) return true;
        if (unnamed && (rest.digits == rest.cells || counts_behind_no_names(rest))) return true;
        if (unnamed && rest.numbers == rest.cells) {
            if (names || first_column_counts()) return true;
            return numbers_behind_no_name(rest);
        }
        if (!counts_ || !below) return false;
        return counting_header(whole, rest, names) || axis_header(whole, rest, names);
    }
    /// Whether a second cell without a name is in front of numbers that count, as above a MultiIndex of pandas.
    [[nodiscard]] bool counts_behind_no_names(const LineSummary& rest) const {
        if (!is_unnamed(rest.first) || rest.digits + 1 != rest.cells) return false;
        return rest.digits > 1 && summary_of(first_line(), form_.delimiter, form_.decimal, 2).counts;
    }
    /// Whether numbers count 0, 1, 2, ... in front of words, as where columns with names were added to such without.
    [[nodiscard]] bool counts_in_front_of_words(const LineSummary& whole, const LineSummary& rest) const {
        const auto counts = [&](std::string_view line) {
            const auto numbers =
                summary_of(line, form_.delimiter, form_.decimal, whole.cells - rest.cells, rest.numbers);
            return numbers.counts && numbers.first_number == 0.0;
        };
        return rest.numbers > 1 && (fractions() || rest.numbers > 3) && counts(first_line()) && few_below(counts);
    }
    /// Words and numbers in one line: a header of years or codes behind the name of the first column, or mostly words.
    [[nodiscard]] bool mixed_header(const LineSummary& whole, const LineSummary& rest, bool names) const {
        if (rest.missing > 0) return false;
        const bool corner = whole.first_kind == CellKind::text && !begins_number(whole.first);
        if (!names && corner && rest.cells > 3 && rest.words == 1 &&
            (axis_of(1) || axis_of(1, &LineSummary::decreases)))
            return true;
        if (rest.digits < rest.numbers) return false;
        if (names) reject_named_index(rest);
        if (!names && counts_in_front_of_words(whole, rest)) return true;
        return 2 * rest.words > rest.cells || (!names && whole.first_kind == CellKind::text && rest.cells > 2);
    }

    /// Throws where a word stands in front of numbers that count, as above a second index.
    void reject_named_index(const LineSummary& rest) const {
        const std::size_t in_front = count_cells(first_line(), form_.delimiter) - rest.cells;
        const auto behind = summary_of(first_line(), form_.delimiter, form_.decimal, in_front + 1);
        if (rest.first_kind != CellKind::text || rest.words != 1 || behind.cells < 2 || !behind.counts) return;
        throw input_error(
            "{}:{}: the header counts behind {} (perhaps a second index, as pandas writes of a MultiIndex): leave that "
            "column, number {}, out",
            path_, lines_.front().number, in_quotes(rest.first), in_front + 1);
    }

    /// A first line 0, 1, 2, ... that the next line does not go on with, or whole numbers such as years above
    /// fractions.
    bool counting_header(const LineSummary& whole, const LineSummary& rest, bool names) {
        if (rest.digits == rest.cells && !rest.counts && rest.cells > 1 && 2 * seen_.digits < seen_.numbers &&
            !(rest.years && rest.cells > 2)) {
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
        const bool row_name = names && whole.first_kind == CellKind::text && !is_corner(whole.first);
        if ((rest.first_number > 0.0 || rest.cells == 2 || row_name) && !fractions()) {
            if (rest.first_number == 0.0 || rest.cells > 2)
                form_.header_note = fmt::format(
                    "its first line counts {} and is read as data (--header yes: as a header)", counting_text(rest));
            return false;
        }
        form_.guessed = true;
        form_.header_note = fmt::format("it counts {}; --header no reads it as data", counting_text(rest));
        return true;
    }

    /// An empty cell and numbers above rows that all have a first cell: the names of columns, and an index.
    bool numbers_behind_no_name(const LineSummary& rest) {
        const std::size_t rows = lines_.size() - 1;
        if (rows < 2 || rows_without_index(1) > 0) return false;
        form_.guessed = true;
        form_.header_note = fmt::format(
            "numbers from {} on behind an empty cell, which --header no reads as a missing value", rest.first);
        return true;
    }
    /// The number of lines from this one on whose first cell is empty.
    [[nodiscard]] std::size_t rows_without_index(std::size_t from) const {
        return static_cast<std::size_t>(
            std::count_if(lines_.begin() + static_cast<std::ptrdiff_t>(from), lines_.end(), [&](const TextLine& line) {
                return summary_of(line.text, form_.delimiter, form_.decimal, 0, 1).first.empty();
            }));
    }

    /// Whether the cells from this one on are numbers that increase, or decrease, unlike those of most other lines.
    [[nodiscard]] bool axis_of(std::size_t from, bool LineSummary::*runs = &LineSummary::increases) const {
        if (!(summary_of(first_line(), form_.delimiter, form_.decimal, from).*runs)) return false;
        return few_below([&](std::string_view line) {
            return summary_of(line, form_.delimiter, form_.decimal, from, cells_looked_at).*runs;
        });
    }
    template <class Holds>
    [[nodiscard]] bool few_below(const Holds& holds) const {
        const auto data = data_lines(lines_);
        return 2 * static_cast<std::size_t>(std::count_if(data.begin(), data.end(), holds)) < data.size();
    }
    /// Whether the first cell names a column of names: a usual word, or one without digits above names with digits.
    [[nodiscard]] bool is_corner(const std::string& text) const {
        const auto has_digit = [](std::string_view name) {
            return name.find_first_of("0123456789") != std::string_view::npos;
        };
        if (names_a_total(text)) return false;
        if (names_a_column(text)) return true;
        return !has_digit(text) && few_below([&](std::string_view line) {
            return !has_digit(summary_of(line, form_.delimiter, form_.decimal, 0, 1).first);
        });
    }
    [[nodiscard]] bool first_column_counts() const {
        for (std::size_t i = 2; i < lines_.size(); ++i) {
            const auto before = summary_of(lines_[i - 1].text, form_.delimiter, form_.decimal, 0, 1);
            const auto row = summary_of(lines_[i].text, form_.delimiter, form_.decimal, 0, 1);
            if (row.digits == 0 || before.digits == 0 || row.last_number != before.last_number + 1.0) return false;
        }
        return summary_of(lines_[1].text, form_.delimiter, form_.decimal, 0, 1).counts;
    }

    /// Years, or the places or codes of an axis, in the first line.
    bool axis_header(const LineSummary& whole, const LineSummary& rest, bool names) {
        if (rest.numbers < rest.cells) return false;
        const bool years = rest.years && rest.cells > (names ? 1 : 2) && few_below([&](std::string_view line) {
                               return summary_of(line, form_.delimiter, form_.decimal, names ? 1 : 0).years;
                           });
        const bool corner = names && whole.first_kind == CellKind::text && rest.cells > 1 &&
                            (is_corner(whole.first) || (rest.cells > 4 && axis_of(1)));
        if (years || corner) {
            form_.guessed = true;
            form_.header_note =
                fmt::format("{} from {} on, --header no reads them as data", years ? "years" : "numbers", rest.first);
            return true;
        }
        const std::size_t from = names ? 1 : 0;
        const std::size_t least = names ? 3 : 4;
        const bool up = rest.cells >= least && axis_of(from);
        const bool down = rest.cells > least && axis_of(from, &LineSummary::decreases);
        if (form_.header_note.empty() && (up || down))
            form_.header_note = fmt::format(
                "its first line {} from {} on, unlike the others, and is read as data (--header yes: as a header)",
                up ? "increases" : "decreases", rest.first);
        return false;
    }

    /// Throws where most names in the first column are numbers in a notation that is not read.
    void reject_unread_numbers() const {
        const auto name = [&](std::string_view line) {
            return summary_of(line, form_.delimiter, form_.decimal, 0, 1).first;
        };
        if (few_below([&](std::string_view line) { return !unread_notation(name(line)).empty(); })) return;
        for (std::size_t i = lines_.size() > 1 ? 1 : 0; i < lines_.size(); ++i)
            if (const auto notation = unread_notation(name(lines_[i].text)); !notation.empty())
                throw input_error(
                    "{}:{}:1: {} is not a number ({}): write plain numbers, or say --index yes where the first column "
                    "names the rows",
                    path_, lines_[i].number, in_quotes(name(lines_[i].text)), notation);
    }

    /// Throws where the header does not name the first column behind the index.
    void reject_second_index(std::string_view line) const {
        if (form_.columns < 3) return;
        const auto rest = summary_of(line, form_.delimiter, form_.decimal, 1, 1);
        if (!is_unnamed(rest.first)) return;
        throw input_error(
            "{}:{}: the header has no name for column 2 (perhaps a second index, as pandas writes of a MultiIndex or "
            "when it saves a table again): name it where it is data, otherwise leave that column out",
            path_, lines_.front().number);
    }

    /// Whether all cells but the first are empty.
    [[nodiscard]] bool names_index_only(std::string_view line) const {
        std::size_t cells = 0, filled = 0;
        bool first = false;
        each_cell(line, form_.delimiter, [&](const TableCell& cell) {
            first = first || (cells == 0 && !cell.text.empty());
            filled += !cell.text.empty();
            return ++cells < cells_looked_at;
        });
        return first && filled == 1 && cells > 2;
    }

    /// Throws where the first lines below the header, and no others, have no index.
    void reject_second_header() const {
        for (std::size_t i = 2; i < std::min<std::size_t>(lines_.size() - 1, 4); ++i)
            if (names_index_only(lines_[i].text))
                throw input_error(
                    "{}:{}: a line with a name and no numbers (as where pandas writes levels of columns above it): "
                    "leave it out with the lines between it and the first, or join the levels: df.columns = "
                    "df.columns.map(str)",
                    path_, lines_[i].number);
        const std::size_t missing = rows_without_index(1);
        if (missing == 0 || missing + 1 == lines_.size() || rows_without_index(1 + missing) > 0) return;
        throw input_error(
            "{}:{}: a second header line (its index is empty, unlike those of the rows, as where pandas writes levels "
            "of columns): leave it out, or join the levels: df.columns = df.columns.map(str)",
            path_, number_of_second());
    }

    /// Where two columns have one name, the first may be an index, or both may be one number with a decimal comma, or
    /// the name may be a title.
    void reject_lone_header(bool names) const {
        const auto row = summary_of(lines_[1].text, form_.delimiter, form_.decimal, 0, 2);
        if (names || row.first_quoted) return;
        if (form_.columns > 2 && form_.delimiter == ' ' && !first_column_counts())
            throw input_error(
                "{}:{}: {} names above {} cells (the first may be an index): say --index yes, or leave out the line "
                "where it is a title",
                path_, lines_.front().number, form_.columns - 1, form_.columns);
        if (form_.columns != 2) return;
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

std::vector<std::string_view> data_lines(const std::vector<TextLine>& lines) {
    std::vector<std::string_view> data;
    for (std::size_t i = lines.size() > 1 ? 1 : 0; i < lines.size(); ++i) data.push_back(lines[i].text);
    return data;
}

bool ends_with_delimiter(std::string_view line, char delimiter) {
    const std::size_t last = line.find_last_not_of(delimiter == '\t' ? " " : " \t");
    return delimiter != ' ' && last != line.npos && line[last] == delimiter;
}

void decide_first_line(const std::string& path, const std::vector<TextLine>& lines, const TableDialect& given,
                       bool counts, const MarksSeen& seen, TableForm& form) {
    FirstLine(path, lines, given, counts, seen, form).decide();
}

}  // namespace spiked::sim
