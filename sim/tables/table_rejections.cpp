#include "sim/tables/table_rejections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/tables/table_notes.hpp"

namespace spiked::sim {
namespace {

bool has_number(const TableState& table, std::string_view line) {
    bool found = false;
    each_cell(line, table.form.delimiter,
              [&](const TableCell& cell) { return !(found = number_with(cell.text, table.decimal).has_value()); });
    return found;
}

/// Whether the cell of this line, or any one up to it, is neither a number nor missing.
bool has_text(const TableState& table, std::string_view line, std::size_t at, bool one_column) {
    std::size_t cell_number = 0;
    bool found = false;
    each_cell(line, table.form.delimiter, [&](const TableCell& cell) {
        const bool looked_at = one_column ? cell_number == at : cell_number >= table.form.index;
        ++cell_number;
        if (looked_at && !is_missing(cell.text) && !number_with(cell.text, table.decimal)) found = true;
        return !found && cell_number <= at;
    });
    return found;
}

/// Whether most of the first lines have text in this cell, or in any up to it.
bool usual_text(const TableState& table, std::size_t i, bool one_column) {
    const std::size_t from = table.form.header ? 1 : 0;
    const std::size_t lines = table.sample.size() - from;
    const auto texts = std::count_if(table.sample.begin() + static_cast<std::ptrdiff_t>(from), table.sample.end(),
                                     [&](const TextLine& line) { return has_text(table, line.text, i, one_column); });
    return lines > 1 && 2 * static_cast<std::size_t>(texts) > lines;
}

/// Advice to state the form of the table by the options that were not given.
std::string form_advice(const TableState& table) {
    if (table.dialect.delimiter && table.form.columns == 1) return "correct --delimiter, or ";
    std::vector<std::string_view> options;
    if (!table.dialect.delimiter) options.emplace_back("--delimiter");
    if (!table.dialect.decimal) options.emplace_back("--decimal");
    if (options.empty()) return "";
    return fmt::format("say with {} how the table is written, or ", fmt::join(options, " and "));
}

/// The numbers of columns, at most six of them.
std::string listed(const std::vector<std::size_t>& columns) {
    constexpr std::size_t most = 6;
    const std::vector<std::size_t> first(columns.begin(),
                                         columns.begin() + static_cast<std::ptrdiff_t>(std::min(columns.size(), most)));
    const std::size_t more = columns.size() - first.size();
    return fmt::format("{}{}", fmt::join(first, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

/// The line of Python that writes the columns of numbers of a table.
std::string numeric_line(const TableState& table) {
    return fmt::format(
        "python3 -c \"import pandas; pandas.read_csv('FILE'{}).select_dtypes('number').to_csv('x.csv', index=False)\"",
        pandas_options(table.form, table.decimal));
}

/// The line of Python that writes the lists in a column as the rows of a matrix.
std::string list_line(const TableState& table, std::size_t column) {
    return fmt::format(
        "python3 -c \"import numpy,pandas; numpy.save('x.npy', numpy.array([v.strip('[]').replace(',',' ').split() for "
        "v in pandas.read_csv('FILE'{}).iloc[:,{}]], dtype=float))\"",
        pandas_options(table.form, table.decimal), column);
}

/// Throws where a cell of the text, a line or a part of it, is several numbers.
void reject_touching_numbers(const TableState& table, std::string_view text, std::size_t number) {
    each_cell(text, table.form.delimiter, [&](const TableCell& cell) {
        if (has_touching_numbers(cell.text))
            throw input_error(
                "{}:{}: {} is more than one number (as where a number fills its field in Fortran): write them with a "
                "blank between them, or in wider fields",
                table.path, number, in_quotes(cell.text));
        return true;
    });
}

void reject_comment_behind(const TableState& table, const TextLine& line) {
    const std::string_view text = line.text;
    const std::string_view comment = comment_behind(text);
    const std::string_view row = text.substr(0, text.size() - comment.size());
    if (comment.empty() ||
        summary_of(row, table.form.delimiter, table.decimal, table.form.index, cells_looked_at).words > 0)
        return;
    const std::string_view mark = comment.substr(0, comment_mark(comment));
    throw input_error(
        "{}:{}: a comment behind the numbers, which begins with {}: leave it out, for example: sed "
        "'s|[[:blank:]]{}.*||' FILE > NEW",
        table.path, line.number, in_quotes(mark), mark);
}

/// Throws where at least `least` lines that begin with a name, as of an instrument, are above the rows.
void reject_preamble(const TableState& table, const std::string& where, const std::string& what, std::size_t least) {
    const auto& sample = table.sample;
    std::vector<std::string_view> data;
    for (const auto& line : sample) data.emplace_back(line.text);
    const auto summary = [&](const TextLine& line, std::size_t from) {
        return summary_of(line.text, table.form.delimiter, table.decimal, from, cells_looked_at);
    };
    const std::size_t names =
        name_columns({data.end() - static_cast<std::ptrdiff_t>((data.size() + 1) / 2), data.end()},
                     table.form.delimiter, table.decimal, table.form.columns);
    const auto is_row = [&](const TextLine& line) {
        const auto found = summary(line, names);
        return found.words == 0 && found.numbers + found.missing > 0 && found.cells + names >= table.form.columns;
    };
    const auto first = std::find_if_not(sample.rbegin(), sample.rend(), is_row).base();
    const auto above = static_cast<std::size_t>(first - sample.begin());
    if (table.rows > 0 || sample.end() - first < 2 || above < least) return;
    const auto is_named = [&](const TextLine& line) {
        const auto found = summary(line, 0);
        return found.first_kind == CellKind::text || (found.words > 0 && found.numbers == 0);
    };
    if (!std::all_of(sample.begin(), first, is_named)) return;
    const auto last = std::prev(first);
    const bool is_header = summary(*last, 0).numbers == 0 && summary(*last, 0).cells + 1 >= table.form.columns;
    throw input_error(
        "{}: {} (rows of numbers begin at line {}): leave out what is above them and the names of their columns, for "
        "example: tail -n +{} FILE > NEW",
        where, what, first->number, is_header ? last->number : first->number);
}

/// Throws where a line without numbers is a title, units or the beginning of another table.
void reject_line_of_words(const TableState& table, const TextLine& line, const std::string& what, bool column_of_text,
                          const TableCell& cell) {
    const std::string where = fmt::format("{}:{}:{}", table.path, line.number, cell.column);
    if (has_number(table, line.text)) return;
    if (table.rows > 0 && !column_of_text)
        throw input_error("{}: {} (no cell of the line is a number): leave out line {}{}", where, what, line.number,
                          count_cells(line.text, table.form.delimiter) > 1
                              ? ", or, where another table or more columns begin here, give each its own file"
                              : "");
    if (table.rows == 0 && table.form.header && !begins_number(cell.text) && table.sample.size() > 2 &&
        has_number(table, table.sample[2].text))
        throw input_error(
            "{}: {} (no cell of the line is a number): line {} holds units or a second header: leave it out, or line "
            "{} where that is a title",
            where, what, line.number, table.sample.front().number);
}

/// Whether each line has one cell more than the line before; the first may be a header.
bool is_triangle(const TableState& table) {
    const auto& lines = table.sample;
    if (table.rows >= lines.size() || lines.size() < 3) return false;
    const bool header =
        count_cells(lines[1].text, table.form.delimiter) != count_cells(lines[0].text, table.form.delimiter) + 1;
    if (header && lines.size() < 4) return false;
    for (std::size_t i = header ? 2 : 1; i < lines.size(); ++i)
        if (count_cells(lines[i].text, table.form.delimiter) !=
            count_cells(lines[i - 1].text, table.form.delimiter) + 1)
            return false;
    return true;
}

}  // namespace

void reject_other_shape(const TableState& table, std::size_t number) {
    reject_preamble(table, fmt::format("{}:{}", table.path, table.sample.front().number),
                    "lines of text above the table", 2);
    if (is_triangle(table))
        throw input_error(
            "{}:{}: the rows become longer by one cell (the lower triangle of a symmetric matrix): write all of the "
            "matrix, in NumPy: a + numpy.tril(a, -1).T, in R: as.matrix(d)",
            table.path, number);
}

void reject_text(const TableState& table, const TableCell& cell, std::size_t i, const TextLine& line) {
    const std::string where = fmt::format("{}:{}:{}", table.path, line.number, cell.column);
    const std::string what = fmt::format("{} is not a number", in_quotes(cell.text));
    const std::string form =
        fmt::format("{}, decimal {}", delimiter_text(table.form.delimiter), table.decimal == ',' ? "comma" : "point");
    reject_printed_part(table.path, line);
    if (i >= table.form.index) reject_touching_numbers(table, cell.text, line.number);
    const bool both = cell.text.find(',') != cell.text.npos && cell.text.find('.') != cell.text.npos;
    if (has_thousands(cell.text, ',') || has_thousands(cell.text, '.') || number_with_comma(cell.text) ||
        number_with_point(cell.text))
        throw input_error(
            "{}: {} (read with {}; a second mark, as between thousands, is not read): write all numbers with the "
            "decimal mark only{}",
            where, what, form, table.dialect.decimal || both ? "" : ", or name that with --decimal");
    // Strands are + and -, which elsewhere stands for a missing value.
    const bool column_of_text = cell.text == "+" || usual_text(table, i, true);
    const bool first_line = line.number == table.sample.front().number;
    if (const auto notation = unread_notation(cell.text); !notation.empty() && (!first_line || column_of_text))
        throw input_error("{}: {} ({}; read with {}): {}", where, what, notation, form,
                          notation.starts_with("a list") ? list_line(table, i) : "write plain numbers");
    reject_comment_behind(table, line);
    reject_line_of_words(table, line, what, column_of_text, cell);
    reject_preamble(table, where, what, 3);
    if (const auto between = other_separator(line.text); !between.empty())
        throw input_error("{}: {} (numbers with {} between them): write commas: {}", where, what, in_quotes(between),
                          between.size() == 1 ? fmt::format("tr '{}' , < FILE > x.csv", between)
                                              : fmt::format("sed 's/{}/,/g' FILE > x.csv", between));
    if (i == 0 && table.dialect.index == false && column_of_text)
        throw input_error("{}: {} (the first column names the rows): say --index yes", where, what);
    if (table.dialect.header == false && first_line && !column_of_text)
        throw input_error("{}: {} (the first line names the columns): say --header yes", where, what);
    const bool line_of_text = usual_text(table, i, false);
    if (first_line && !table.form.header && table.sample.size() > 1 && !line_of_text)
        throw input_error(
            "{}: {} (cell {} of the first line): correct the cell, or say --header yes if the line names the columns",
            where, what, i + 1);
    const bool some_number = has_number(table, line.text);
    if (!some_number || (!column_of_text && line_of_text))
        throw input_error("{}: {} (read with {}, in which {}): {}leave out what holds no numbers", where, what, form,
                          some_number ? "few lines are numbers" : "no cell of the line is one", form_advice(table));
    const std::size_t cells = count_cells(line.text, table.form.delimiter);
    if (i == 0 && cells == table.form.columns + 1 && !column_of_text)
        throw input_error("{}: {} (a name in front of {} {}, which no other line has): leave out line {}, or the name",
                          where, what, table.form.columns, table.form.columns == 1 ? "cell" : "cells", line.number);
    if (column_of_text) {
        std::vector<std::size_t> columns;
        constexpr std::size_t most_looked_at = 256;
        for (std::size_t column = i; column < std::min(cells, most_looked_at); ++column)
            if (usual_text(table, column, true)) columns.push_back(column + 1);
        if (columns.empty()) columns.push_back(i + 1);
        // Where other cells are numbers, the form is right.
        const bool mostly_text = 2 * columns.size() > cells;
        const bool one = columns.size() == 1;
        throw input_error("{}: {} ({} {} of {} {} text; read with {}): {}leave {} out{}", where, what,
                          one ? "column" : "columns", listed(columns), cells, one ? "holds" : "hold", form,
                          mostly_text ? form_advice(table) : "", one ? "that column" : "them",
                          mostly_text ? "" : ": " + numeric_line(table));
    }
    throw input_error("{}: {} (cell {} of {}; {}): correct the cell", where, what, i + 1, cells, form);
}

void reject_count(const TableState& table, const CountedCells& found, const TextLine& line, std::size_t first) {
    reject_printed_part(table.path, line);
    reject_comment_behind(table, line);
    if (found.cells < table.form.columns) reject_touching_numbers(table, line.text, line.number);
    for (std::size_t k = table.sample.size(); table.rows == 0 && k-- > 0;)
        if (count_cells(table.sample[k].text, table.form.delimiter) == table.form.columns)
            first = table.sample[k].number;
    reject_other_shape(table, line.number);
    throw input_error("{}:{}:{}: {} {} ({} {}; every row needs the same number): correct the line, or leave it out",
                      table.path, line.number, found.wrong_column, found.cells, found.cells == 1 ? "cell" : "cells",
                      first > 0 ? fmt::format("line {} has", first) : "most lines have", table.form.columns);
}

void reject_thousands(const std::string& where, std::string_view text, char mark) {
    if (text.find(',') != text.npos && text.find('.') != text.npos)
        throw input_error(
            "{}: numbers such as {} have two marks (one separates thousands): write them with the decimal mark only",
            where, in_quotes(text));
    const char* name = mark == ',' ? "comma" : "point";
    throw input_error(
        "{}: numbers such as {} can be read in two ways (the {} may separate decimals or thousands): say --decimal {} "
        "if it separates decimals, otherwise write them without separators of thousands",
        where, in_quotes(text), name, name);
}

}  // namespace spiked::sim
