#include "sim/tables/table_notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/printable.hpp"

namespace spiked::sim {

void NamedLines::add(std::string_view name, std::string_view what, std::size_t place) {
    if (count++ == 0) first = fmt::format("{} ({} {})", in_quotes(name), what, place);
}

std::string NamedLines::note(std::string_view what, std::string_view like) const {
    return fmt::format("its {} {} {} named like {} and read as data (leave out what is no data)", what, first,
                       count == 1 ? "is" : fmt::format("and {} more are", count - 1), like);
}

std::string pandas_options(const TableForm& form, std::optional<char> decimal) {
    std::string options;
    if (form.delimiter == '\t')
        options += ",sep='\\t'";
    else if (form.delimiter == ' ')
        options += ",sep=r'\\s+'";
    else if (form.delimiter != ',')
        options += fmt::format(",sep='{}'", form.delimiter);
    if (decimal == ',') options += ",decimal=','";
    if (!form.header) options += ",header=None";
    return options;
}

std::string pivot_line(const TableForm& form, std::optional<char> decimal, std::size_t columns, std::size_t value) {
    return fmt::format(
        "python3 -c \"import pandas; t=pandas.read_csv('FILE'{}); t.pivot(index=t.columns[-{}],"
        "columns=t.columns[-{}],values=t.columns[-{}]).to_csv('x.csv',header=False,index=False)\", with .fillna(0) "
        "before .to_csv where the others are 0",
        pandas_options(form, decimal), columns, columns - 1, columns - value);
}

namespace {

/// The parts of the form that are not those of numbers between commas, in one sentence; empty without any.
std::string form_note(const TableForm& form, std::optional<char> decimal, const TableFindings& found) {
    std::vector<std::string> parts;
    const bool one_column = form.columns == 1;
    if (form.delimiter != ',' && !one_column) parts.push_back(delimiter_text(form.delimiter));
    if (decimal == ',') parts.emplace_back("decimal comma");
    if (form.quoted) parts.emplace_back("numbers in quotes");
    if (form.trailing) parts.emplace_back("a delimiter at the end of each line");
    if (found.row_ends) parts.emplace_back("a semicolon at the end of each line");
    if (found.bars) parts.emplace_back("bars at both ends of each line");
    const bool noted = form.header && !form.header_note.empty();
    if (form.header) parts.push_back(noted ? fmt::format("a header line ({})", form.header_note) : "a header line");
    if (form.index > 0)
        parts.push_back(form.index > 1 ? fmt::format("{} index columns", form.index)
                        : form.quoted_index
                            ? "an index column (its numbers are in quotes, unlike the others; --index no "
                              "reads them as data)"
                            : "an index column");
    if (found.counted)
        parts.push_back(fmt::format("an index column (it counts {:.0f} to {:.0f}; --index no reads it as data)",
                                    found.first.first, found.first.last));
    if (parts.empty()) return "";
    const std::string last = parts.back();
    parts.pop_back();
    return fmt::format("read with {}{}{}", fmt::join(parts, ", "), parts.empty() ? "" : " and ", last);
}

/// Whether the first column may identify the rows.
bool may_identify(const TableForm& form, const TableFindings& found) {
    const FirstColumn& first = found.first;
    if (found.rows >= 2 && names_an_axis(form.first_name)) return true;
    if (found.rows >= 4 && first.even) return true;
    if (names_a_column(form.first_name)) return first.whole && found.rows >= 2;
    if (first.whole && first.padded && found.rows >= 2) return true;
    return first.whole && first.increases && found.rows >= 3 && (first.counts || found.fractions);
}

std::string first_column_note(const TableForm& form, const TableFindings& found) {
    const FirstColumn& first = found.first;
    return fmt::format("its first column{} {} and is read as data (--index yes leaves it out)",
                       form.first_name.empty() ? "" : ", " + in_quotes(form.first_name) + ",",
                       first.whole ? first.padded ? "holds numbers with zeros in front" : "holds whole numbers"
                       : first.even && found.rows >= 4 ? "is evenly spaced"
                                                       : "may name the rows");
}

/// The number is in the third column, or in the last of four where that has fractions and the third, a count, has none.
std::string places_note(const TableForm& form, std::optional<char> decimal, const arma::mat& matrix) {
    const auto is_whole = [](const arma::vec& column) { return arma::all(column == arma::floor(column)); };
    const std::size_t columns = matrix.n_cols;
    const std::size_t value = columns == 4 && is_whole(matrix.col(2)) && !is_whole(matrix.col(3)) ? 3 : 2;
    return fmt::format(
        "the first two of its {} columns hold whole numbers, each pair once, and are read as data. If they are the row "
        "and the column of the {}, write the matrix: {}",
        columns == 3 ? "three" : "four", value == 2 ? "third" : "fourth", pivot_line(form, decimal, columns, value));
}

/// Notes on rows and columns of the matrix that may be no data.
std::vector<std::string> doubts(const TableForm& form, const TableFindings& found, const arma::mat& matrix) {
    static constexpr std::string_view a_total = "a total or a statistic of the others";
    auto notes = doubtful_lines(matrix, found.counted ? 1 : form.index, form.header, form.repeated_names);
    notes.push_back(found.total_rows.count > 0 ? found.total_rows.note("row", a_total) : last_line_note(matrix, true));
    notes.push_back(found.total_columns.count > 0 ? found.total_columns.note("column", a_total)
                                                  : last_line_note(matrix, false));
    if (found.time_columns.count > 1 || found.plain_time)
        notes.push_back(found.time_columns.note("column", "parts of a date or a time"));
    if (found.label_columns.count > 0) notes.push_back(found.label_columns.note("column", "labels of the rows"));
    if (found.label_row.count > 0) notes.push_back(found.label_row.note("first row", "labels of the columns"));
    return notes;
}

}  // namespace

std::vector<std::string> table_notes(const std::string& path, const TableForm& form, std::optional<char> decimal,
                                     const TableFindings& found, const arma::mat& matrix) {
    std::vector<std::string> notes;
    const auto say = [&](const std::string& note) {
        if (!note.empty()) notes.push_back(path + ": " + note);
    };
    say(form_note(form, decimal, found));
    if (found.factor_line > 0)
        say(fmt::format("its numbers are multiplied by {:g}, as its line {} says", found.factor, found.factor_line));
    if (!form.header) say(form.header_note);
    if (found.empty_corner)
        say("its first cell is empty and read as a missing value (--header yes --index yes where the first line names "
            "the columns)");
    if (found.comments > 0)
        say(fmt::format("{} behind its first row {} like {} and {} left out (the first is line {})",
                        found.comments == 1 ? "1 line" : fmt::format("{} lines", found.comments),
                        found.comments == 1 ? "begins" : "begin", found.comments == 1 ? "a comment" : "comments",
                        found.comments == 1 ? "is" : "are", found.first_comment));
    const std::size_t gaps = found.gaps - (form.header && found.gap_behind_first ? 1 : 0);
    if (gaps > 0 && gaps + 1 < found.rows)
        say(
            fmt::format("empty lines between its rows are left out ({}, such as line {}; where they part two tables, "
                        "give each its own file)",
                        gaps, found.a_gap));
    const bool places = holds_places(matrix) && (matrix.n_cols == 3 || found.time_columns.count < 2);
    if (form.may_count && !found.counted && !places && may_identify(form, found)) say(first_column_note(form, found));
    if (places) say(places_note(form, decimal, matrix));
    for (const auto& doubt : doubts(form, found, matrix)) say(doubt);
    return notes;
}

}  // namespace spiked::sim
