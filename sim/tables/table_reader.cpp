#include "sim/io/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/table_cells.hpp"
#include "sim/io/table_dialect.hpp"
#include "sim/io/text_lines.hpp"

namespace spiked::sim {
namespace {

/// The form of a table is recognised from so many lines, or from this many bytes and at least three lines.
constexpr std::size_t sample_lines = 64;
constexpr std::size_t sample_bytes = 1 << 20;

class TableReader {
public:
    TableReader(std::string path, const TableReading& reading)
        : path_(std::move(path)),
          dialect_(reading.dialect),
          counts_(reading.counts),
          check_(reading.check),
          missing_(reading.keep_missing, reading.missing_option) {}

    void line(std::string_view text) {
        ++line_;
        const bool may_open = !begun() && !is_empty_line(text) && !begins_comment(text);
        if (!open_.empty() || (may_open && opens_quote(text))) return quoted_line(text);
        whole_line(text, line_);
    }

    [[nodiscard]] Table table() {
        if (!open_.empty()) reject_open_quote();
        if (!form_ && !sample_.empty()) begin_rows();
        if (rows_ == 0) throw input_error("{}: empty matrix (it has no line of numbers): give at least one row", path_);
        if (!unsure_.empty()) reject_thousands(unsure_place_, unsure_, *decimal_);
        missing_.reject(rows_);
        reject_long_table();
        Table found{.notes = {}, .guessed = form_->guessed};
        const bool counted = form_->may_count && first_.counts && rows_ >= 2 && counts_rows();
        if (counted) found.guessed = true;
        const std::size_t stored = form_->columns - form_->index;
        if (stored == 0) throw input_error("{}: only an index (no column of numbers is left): say --index no", path_);
        arma::mat lines(values_.data(), stored, rows_, false, true);
        if (factor_line_ > 0) lines *= factor_;
        if (counted)
            found.matrix = lines.tail_rows(stored - 1).t();
        else
            found.matrix = lines.t();
        if (!counts_) return found;
        const bool places = holds_places(found.matrix);
        found.notes = notes(counted, places);
        if (places) found.notes.push_back(places_note());
        auto doubts = doubtful_lines(found.matrix, counted ? 1 : form_->index, form_->header);
        doubts.push_back(total_rows_.count > 0 ? total_rows_.note("row", a_total) : last_line_note(found.matrix, true));
        doubts.push_back(total_columns_.count > 0 ? total_columns_.note("column", a_total)
                                                  : last_line_note(found.matrix, false));
        if (time_columns_.count > 1) doubts.push_back(time_columns_.note("column", "parts of a date or a time"));
        if (label_row_.count > 0) doubts.push_back(label_row_.note("first row", "labels of the columns"));
        for (const auto& doubt : doubts)
            if (!doubt.empty()) found.notes.push_back(path_ + ": " + doubt);
        return found;
    }

private:
    /// Rows or columns whose names tell that they may be no data.
    struct NamedLines {
        std::size_t count = 0;
        std::string first;  ///< its name and its place

        void add(std::string_view name, std::string_view what, std::size_t place) {
            if (count++ == 0) first = fmt::format("{} ({} {})", in_quotes(name), what, place);
        }
        [[nodiscard]] std::string note(std::string_view what, std::string_view like) const {
            return fmt::format("its {} {} {} named like {} and read as data (leave out what is no data)", what, first,
                               count == 1 ? "is" : fmt::format("and {} more are", count - 1), like);
        }
    };
    static constexpr std::string_view a_total = "a total or a statistic of the others";

    [[nodiscard]] bool begun() const { return form_ || !sample_.empty(); }

    /// Joins the lines of a header whose names hold ends of lines.
    void quoted_line(std::string_view text) {
        constexpr std::size_t most_bytes = 1 << 16;
        if (open_.empty()) open_line_ = line_;
        open_ += open_.empty() ? std::string(text) : " " + std::string(text);
        if (open_.size() > most_bytes) reject_open_quote();
        if (opens_quote(open_)) return;
        whole_line(std::exchange(open_, {}), open_line_);
    }
    [[noreturn]] void reject_open_quote() const {
        throw input_error("{}:{}: a quote opens here and does not close: close it, or leave it out", path_, open_line_);
    }
    void whole_line(std::string_view text, std::size_t number) {
        if (is_empty_line(text)) {
            empty_ = begun() ? line_ : 0;
            return;
        }
        if (begins_comment(text)) return comment(text);
        if (parted_ > 0)
            throw input_error(
                "{}:{}: a second matrix begins here (line {} parts it from the first): write each to its own file",
                path_, line_, parted_);
        if (empty_ > 0) add_gap();
        if (form_) return row(text, number);
        if (sample_.empty() && text.starts_with("sep=") && text.size() == 5) {  // as spreadsheets write
            if (!dialect_.delimiter) dialect_.delimiter = text.back();
            return;
        }
        if (sample_.empty() && names_variable(text)) return;
        if (sample_.empty() && factor_line_ == 0)
            if (const auto factor = printed_factor(text)) {
                factor_ = *factor;
                factor_line_ = number;
                return;
            }
        sample_.push_back({std::string(text), number});
        sampled_ += text.size();
        if (sample_.size() == sample_lines || (sampled_ >= sample_bytes && sample_.size() >= 3)) begin_rows();
    }

    /// Comments may turn out to be rows when the form is known.
    void comment(std::string_view text) {
        if (begun() && (text.starts_with("# name:") || text.starts_with("# New slice"))) parted_ = line_;
        if (form_) return comment_or_row(text, line_);
        hashed_.push_back({std::string(text), line_});
        if (!begun() && hashed_.size() > sample_lines) hashed_.erase(hashed_.begin());
        if (begun() && hashed_.size() >= 2 * sample_lines) begin_rows();
    }
    /// A line that begins like a comment is a row where it has a name and numbers for all cells of a row.
    void comment_or_row(std::string_view text, std::size_t number) {
        const bool in_front = number < sample_.front().number;
        if (form_->delimiter == ';' && text[text.find_first_not_of(" \t")] == ';' && !(in_front && form_->header))
            return row(text, number);
        if (form_->index > 0 && !(in_front && form_->header) && names_row(text)) return row(text, number);
        if (rows_ > 0 && text.front() == '#') reject_printed_part(path_, {std::string(text), number});
        if (rows_ > 0 && left_out_++ == 0) first_left_out_ = number;
    }
    [[nodiscard]] bool names_row(std::string_view text) const {
        std::size_t cells = 0;
        bool numbers = true;
        each_cell(text, form_->delimiter, [&](const TableCell& cell) {
            if (cells == form_->columns && form_->trailing && cell.text.empty()) return true;
            if (cells++ >= form_->index) numbers = numbers && (is_missing(cell.text) || is_number(cell.text));
            return numbers && cells <= form_->columns;
        });
        return numbers && cells == form_->columns && cells > 1;
    }
    /// Empty lines between rows may part two tables.
    void add_gap() {
        if (++gaps_ == 1 || (gaps_ == 2 && gap_behind_first_)) a_gap_ = empty_;
        if (!form_ && sample_.size() == 1) gap_behind_first_ = true;
        empty_ = 0;
    }
    void begin_rows() {
        for (const auto& line : sample_) reject_printed_part(path_, line);
        take_hashed_lines(sample_, hashed_);
        strips_ = !dialect_.delimiter && strip_row_ends(sample_);
        // Of two numbers in such a row the comma is the delimiter.
        const auto is_pair = [](const TextLine& line) { return number_with_comma(line.text).has_value(); };
        const bool has_comma = sample_.front().text.find(',') != std::string::npos;
        if (strips_ && has_comma && !dialect_.decimal && std::all_of(sample_.begin(), sample_.end(), is_pair))
            dialect_.delimiter = ',';
        form_ = recognise_table(path_, sample_, dialect_, counts_);
        decimal_ = form_->decimal;
        fast_ = !check_ && form_->index == 0 && !form_->trailing && !form_->quoted && decimal_ != ',';
        auto hashed = hashed_.begin();
        if (form_->header) find_total_columns();
        for (std::size_t i = 0; i < sample_.size(); ++i) {
            for (; hashed != hashed_.end() && hashed->number < sample_[i].number; ++hashed)
                comment_or_row(hashed->text, hashed->number);
            if (i > 0 || !form_->header) row(sample_[i].text, sample_[i].number);
        }
        for (; hashed != hashed_.end(); ++hashed) comment_or_row(hashed->text, hashed->number);
    }

    /// Throws for a table that lists the name of a row, that of a column and a number in each line.
    void reject_long_table() const {
        if (form_->columns != 3 || form_->index == 0 || dialect_.index || !counts_) return;
        for (std::size_t i = 0; form_->index == 1 && i < rows_; ++i)
            if (!(values_[2 * i] >= 0.0) || values_[2 * i] != std::floor(values_[2 * i])) return;
        if (keys_.are_places())
            throw input_error(
                "{}: its first two columns name a row and a column, each pair once, and the third holds the number "
                "(a long table): write the matrix: {}, or say --index yes if both only name the rows",
                path_, pivot_line());
    }

    void find_total_columns() {
        const std::string_view names = sample_.front().text;
        const std::size_t cells = count_cells(names, form_->delimiter);
        std::size_t column = form_->columns - std::min(cells, form_->columns);
        each_cell(names, form_->delimiter, [&](const TableCell& cell) {
            if (column++ >= form_->index) {
                if (names_a_total(cell.text)) total_columns_.add(cell.text, "column", column);
                if (names_a_time(cell.text)) time_columns_.add(cell.text, "column", column);
            }
            return column < form_->columns;
        });
    }

    void row(std::string_view text, std::size_t number) {
        if (strips_) {
            const std::size_t last = text.find_last_not_of(" \t");
            if (text[last] == ';') text = text.substr(0, last);
        }
        if (!fast_ || !plain_row(text)) any_row(text, number);
        if (rows_ == 0) first_line_ = number;
        ++rows_;
    }

    /// Reads a row of numbers with decimal points; false, and nothing read, for any other.
    bool plain_row(std::string_view text) {
        if (!unsure_.empty()) return false;
        if (!decimal_ && form_->delimiter != ',' && text.find('.') != text.npos) {
            if (form_->delimiter == ';') return false;
            decimal_ = '.';
        }
        const char* at = text.data();
        const char* const end = at + text.size();
        const char delimiter = form_->delimiter;
        const auto skip_blanks = [&] {
            while (at != end && (*at == ' ' || (*at == '\t' && delimiter != '\t'))) ++at;
        };
        const std::size_t before = values_.size();
        const auto fail = [&] {
            values_.resize(before);
            return false;
        };
        for (std::size_t cell = 0;; ++cell) {
            skip_blanks();
            double value = 0.0;
            const auto [behind, status] = std::from_chars(at, end, value);
            if (status != std::errc{} || !std::isfinite(value) || cell == form_->columns) return fail();
            if (cell == 0) first_text_ = {at, behind};
            values_.push_back(value);
            at = behind;
            skip_blanks();
            if (at == end) break;
            if (delimiter == ' ' ? at == behind : *at++ != delimiter) return fail();
        }
        if (values_.size() - before != form_->columns) return fail();
        first_.add(rows_, values_[before], first_text_);
        return true;
    }

    void any_row(std::string_view text, std::size_t number) {
        const std::size_t before = values_.size();
        std::size_t cells = 0;
        std::size_t wrong_column = 1;  // where the first superfluous cell, or the last of too few, begins
        each_cell(text, form_->delimiter, [&](const TableCell& cell) {
            const std::size_t i = cells++;
            if (i >= form_->columns && form_->trailing && cell.text.empty()) {
                --cells;
                return true;
            }
            if (i <= form_->columns) wrong_column = cell.column;
            if (i < 2 && form_->index > 0 && form_->columns == 3) keys_.add(i, cell.text);
            if (i < form_->index && names_a_total(cell.text)) total_rows_.add(cell.text, "line", number);
            if (i < form_->index && rows_ == 0 && form_->header && names_a_column(cell.text))
                label_row_.add(cell.text, "line", number);
            if (i < form_->index || i > form_->columns) return true;
            if (i == form_->columns && is_missing(cell.text)) return true;
            values_.push_back(value_of(cell, i, number, text));
            if (i == 0) first_.add(rows_, values_.back(), cell.text);
            return true;
        });
        if (cells != form_->columns) {
            reject_printed_part(path_, {std::string(text), number});
            reject_comment_behind(text, number);
            if (cells < form_->columns) reject_touching_numbers(text, number);
            std::size_t first = first_line_;
            for (std::size_t k = sample_.size(); rows_ == 0 && k-- > 0;)
                if (count_cells(sample_[k].text, form_->delimiter) == form_->columns) first = sample_[k].number;
            throw input_error(
                "{}:{}:{}: {} {} (line {} has {}; every row needs the same number): correct the line, or leave it out",
                path_, number, wrong_column, cells, cells == 1 ? "cell" : "cells", first, form_->columns);
        }
        values_.resize(before + cells - form_->index);
    }

    double value_of(const TableCell& cell, std::size_t i, std::size_t number, std::string_view line) {
        const bool comma = cell.text.find(',') != cell.text.npos;
        const bool point = cell.text.find('.') != cell.text.npos;
        const auto begin_marks = [&](char mark) {
            decimal_ = mark;
            if (!has_thousands(cell.text, mark) || (mark == '.' && form_->delimiter != ';')) return;
            unsure_ = cell.text;
            unsure_place_ = fmt::format("{}:{}:{}", path_, number, cell.column);
        };
        if (!decimal_ && comma && number_with_comma(cell.text)) begin_marks(',');
        if (!decimal_ && point && number_with_point(cell.text)) begin_marks('.');
        if (!unsure_.empty() && (comma || point) && !has_thousands(cell.text, *decimal_)) unsure_.clear();
        const auto value = decimal_ == ',' ? number_with_comma(cell.text) : number_with_point(cell.text);
        if (check_ && (value || number_with_point(cell.text)))
            if (const auto reason = check_(i - form_->index, value ? *value : *number_with_point(cell.text));
                !reason.empty())
                throw input_error("{}:{}:{}: {}", path_, number, cell.column, reason);
        if (value && std::isfinite(*value)) return *value;
        if (!value && !is_missing(cell.text)) reject_text(cell, i, number, line);
        if (i == form_->index && cell.text == "..") reject_printed_part(path_, {std::string(line), number});
        const bool corner = rows_ == 0 && i == 0 && cell.text.empty() && !dialect_.header && !dialect_.index;
        return missing_.add(cell, corner, [&] { return fmt::format("{}:{}:{}", path_, number, cell.column); });
    }

    void reject_touching_numbers(std::string_view text, std::size_t number) const {
        each_cell(text, form_->delimiter, [&](const TableCell& cell) {
            if (has_touching_numbers(cell.text))
                throw input_error(
                    "{}:{}: {} is more than one number (as where a number fills its field in Fortran): write them with "
                    "a blank between them, or in wider fields",
                    path_, number, in_quotes(cell.text));
            return true;
        });
    }

    void reject_comment_behind(std::string_view line, std::size_t number) const {
        const std::string_view comment = comment_behind(line);
        const std::string_view row = line.substr(0, line.size() - comment.size());
        if (comment.empty() || summary_of(row, form_->delimiter, decimal_, form_->index, cells_looked_at).words > 0)
            return;
        const std::string_view mark = comment.substr(0, comment_mark(comment));
        throw input_error(
            "{}:{}: a comment behind the numbers, which begins with {}: leave it out, for example: sed "
            "'s|[[:blank:]]{}.*||' FILE > NEW",
            path_, number, in_quotes(mark), mark);
    }

    [[noreturn]] void reject_text(const TableCell& cell, std::size_t i, std::size_t number,
                                  std::string_view line) const {
        const std::string where = fmt::format("{}:{}:{}", path_, number, cell.column);
        const std::string what = fmt::format("{} is not a number", in_quotes(cell.text));
        const std::string form =
            fmt::format("{}, decimal {}", delimiter_text(form_->delimiter), decimal_ == ',' ? "comma" : "point");
        reject_printed_part(path_, {std::string(line), number});
        if (i >= form_->index) reject_touching_numbers(cell.text, number);
        const bool both = cell.text.find(',') != cell.text.npos && cell.text.find('.') != cell.text.npos;
        if (has_thousands(cell.text, ',') || has_thousands(cell.text, '.') || number_with_comma(cell.text) ||
            number_with_point(cell.text))
            throw input_error(
                "{}: {} (read with {}; a second mark, as between thousands, is not read): write all numbers with the "
                "decimal mark only{}",
                where, what, form, dialect_.decimal || both ? "" : ", or name that with --decimal");
        const bool column_of_text = usual_text(i, true);
        if (const auto notation = unread_notation(cell.text);
            !notation.empty() && (number != sample_.front().number || column_of_text))
            throw input_error("{}: {} ({}; read with {}): write plain numbers", where, what, notation, form);
        reject_comment_behind(line, number);
        if (rows_ > 0 && !column_of_text && !has_number(line))
            throw input_error("{}: {} (no cell of the line is a number): leave out line {}{}", where, what, number,
                              count_cells(line, form_->delimiter) > 1
                                  ? ", or, where another table or more columns begin here, give each its own file"
                                  : "");
        if (rows_ == 0 && form_->header && !begins_number(cell.text) && !has_number(line) && sample_.size() > 2 &&
            has_number(sample_[2].text))
            throw input_error(
                "{}: {} (no cell of the line is a number): line {} holds units or a second header: leave it "
                "out, or line {} where that is a title",
                where, what, number, sample_.front().number);
        reject_preamble(where, what);
        if (i == 0 && dialect_.index == false && column_of_text)
            throw input_error("{}: {} (the first column names the rows): say --index yes", where, what);
        if (dialect_.header == false && number == sample_.front().number && !column_of_text)
            throw input_error("{}: {} (the first line names the columns): say --header yes", where, what);
        if (number == sample_.front().number && !form_->header && sample_.size() > 1 && !usual_text(i, false))
            throw input_error(
                "{}: {} (cell {} of the first line): correct the cell, or say --header yes if the line names the "
                "columns",
                where, what, i + 1);
        if (!has_number(line) || (!column_of_text && usual_text(i, false)))
            throw input_error("{}: {} (read with {}, in which {}): {}leave out what holds no numbers", where, what,
                              form, has_number(line) ? "few lines are numbers" : "no cell of the line is one",
                              form_advice());
        if (column_of_text)
            throw input_error("{}: {} (column {} of {} holds text; read with {}): {}leave that column out", where, what,
                              i + 1, count_cells(line, form_->delimiter), form, form_advice());
        throw input_error("{}: {} (cell {} of {}; {}): correct the cell", where, what, i + 1,
                          count_cells(line, form_->delimiter), form);
    }

    /// Throws where lines of names and values, as of an instrument, are above the rows.
    void reject_preamble(const std::string& where, const std::string& what) const {
        const auto summary = [&](const TextLine& line) {
            return summary_of(line.text, form_->delimiter, decimal_, 0, cells_looked_at);
        };
        const auto is_row = [&](const TextLine& line) {
            const auto found = summary(line);
            return found.words == 0 && found.numbers > 0 && found.cells == form_->columns;
        };
        const auto first = std::find_if_not(sample_.rbegin(), sample_.rend(), is_row).base();
        if (rows_ > 0 || sample_.end() - first < 2 || first - sample_.begin() < 3) return;
        const auto is_named = [&](const TextLine& line) { return summary(line).first_kind == CellKind::text; };
        if (!std::all_of(sample_.begin(), first, is_named)) return;
        const auto names = std::prev(first);
        throw input_error(
            "{}: {} (rows of numbers begin at line {}): leave out what is above them and the names of their columns, "
            "for example: tail -n +{} FILE > NEW",
            where, what, first->number, summary(*names).numbers == 0 ? names->number : first->number);
    }

    /// With which options, of those that were not given, to say the form of the table.
    [[nodiscard]] std::string form_advice() const {
        if (dialect_.delimiter && form_->columns == 1) return "correct --delimiter, or ";
        std::vector<std::string_view> options;
        if (!dialect_.delimiter) options.emplace_back("--delimiter");
        if (!dialect_.decimal) options.emplace_back("--decimal");
        if (options.empty()) return "";
        return fmt::format("say with {} how the table is written, or ", fmt::join(options, " and "));
    }
    [[nodiscard]] bool is_number(std::string_view text) const {
        return (decimal_ == ',' ? number_with_comma(text) : number_with_point(text)).has_value();
    }
    [[nodiscard]] bool has_number(std::string_view line) const {
        bool found = false;
        each_cell(line, form_->delimiter, [&](const TableCell& cell) { return !(found = is_number(cell.text)); });
        return found;
    }
    /// Whether most of the first lines have text in this cell, or in any up to it.
    [[nodiscard]] bool usual_text(std::size_t i, bool one_column) const {
        const std::size_t from = form_->header ? 1 : 0;
        const std::size_t lines = sample_.size() - from;
        const auto texts = std::count_if(sample_.begin() + static_cast<std::ptrdiff_t>(from), sample_.end(),
                                         [&](const TextLine& line) { return has_text(line, i, one_column); });
        return lines > 1 && 2 * static_cast<std::size_t>(texts) > lines;
    }

    /// Whether the cell of this line, or any one, is neither a number nor missing.
    [[nodiscard]] bool has_text(const TextLine& line, std::size_t at, bool one_column) const {
        std::size_t cell_number = 0;
        bool found = false;
        each_cell(line.text, form_->delimiter, [&](const TableCell& cell) {
            const bool looked_at = !one_column || cell_number == at;
            ++cell_number;
            if (looked_at && !is_missing(cell.text) && !is_number(cell.text)) found = true;
            return !found && cell_number <= at;
        });
        return found;
    }

    /// Whether a first column that counts is an index: a count from 1 may be data where all numbers are whole.
    [[nodiscard]] bool counts_rows() const {
        if (form_->header) return true;
        return rows_ >= 3 && (first_.first == 0.0 || has_fractions());
    }
    /// Whether the first column may identify the rows.
    [[nodiscard]] bool may_identify() const {
        if (rows_ >= 2 && names_an_axis(form_->first_name)) return true;
        if (rows_ >= 4 && first_.even) return true;
        if (names_a_column(form_->first_name)) return first_.whole && rows_ >= 2;
        if (first_.whole && first_.padded && rows_ >= 2) return true;
        return first_.whole && first_.increases && rows_ >= 3 && (first_.counts || has_fractions());
    }
    [[nodiscard]] bool has_fractions() const {
        const auto shown = std::min<std::size_t>(values_.size(), 4096);
        return std::any_of(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(shown),
                           [](double value) { return std::isfinite(value) && value != std::floor(value); });
    }

    [[nodiscard]] std::string places_note() const {
        return fmt::format(
            "{}: the first two of its three columns hold whole numbers, each pair once, and are read as data. If they "
            "are the row and the column of the third, write the matrix: {}",
            path_, pivot_line());
    }
    /// The line of Python that writes a matrix of a list of its entries in the form that `form_` describes.
    [[nodiscard]] std::string pivot_line() const {
        std::string options;
        if (form_->delimiter == '\t')
            options += ",sep='\\t'";
        else if (form_->delimiter == ' ')
            options += ",sep=r'\\s+'";
        else if (form_->delimiter != ',')
            options += fmt::format(",sep='{}'", form_->delimiter);
        if (decimal_ == ',') options += ",decimal=','";
        if (!form_->header) options += ",header=None";
        return fmt::format(
            "python3 -c \"import pandas; t=pandas.read_csv('FILE'{}); t.pivot(index=t.columns[-3],"
            "columns=t.columns[-2],values=t.columns[-1]).to_csv('x.csv',header=False,index=False)\", with .fillna(0) "
            "before .to_csv where the others are 0",
            options);
    }

    [[nodiscard]] std::vector<std::string> notes(bool counted, bool places) const {
        std::vector<std::string> parts;
        const bool one_column = form_->columns == 1;
        if (form_->delimiter != ',' && !one_column) parts.push_back(delimiter_text(form_->delimiter));
        if (decimal_ == ',') parts.emplace_back("decimal comma");
        if (form_->quoted) parts.emplace_back("numbers in quotes");
        if (form_->trailing) parts.emplace_back("a delimiter at the end of each line");
        if (strips_) parts.emplace_back("a semicolon at the end of each line");
        const bool noted = form_->header && !form_->header_note.empty();
        if (form_->header)
            parts.push_back(noted ? fmt::format("a header line ({})", form_->header_note) : "a header line");
        if (form_->index > 0)
            parts.push_back(form_->index == 1 ? "an index column" : fmt::format("{} index columns", form_->index));
        if (counted)
            parts.push_back(fmt::format("an index column (it counts {:.0f} to {:.0f}; --index no reads it as data)",
                                        first_.first, first_.last));
        std::vector<std::string> found;
        if (!parts.empty()) {
            const std::string last = parts.back();
            parts.pop_back();
            found.push_back(
                fmt::format("{}: read with {}{}{}", path_, fmt::join(parts, ", "), parts.empty() ? "" : " and ", last));
        }
        if (factor_line_ > 0)
            found.push_back(fmt::format("{}: its numbers are multiplied by {:g}, as its line {} says", path_, factor_,
                                        factor_line_));
        if (!form_->header && !form_->header_note.empty())
            found.push_back(fmt::format("{}: {}", path_, form_->header_note));
        if (missing_.keeps_corner())
            found.push_back(
                fmt::format("{}: its first cell is empty and read as a missing value (--header yes --index "
                            "yes where the first line names the columns)",
                            path_));
        if (left_out_ > 0)
            found.push_back(fmt::format("{}: {} behind its first row {} like {} and {} left out (the first is line {})",
                                        path_, left_out_ == 1 ? "1 line" : fmt::format("{} lines", left_out_),
                                        left_out_ == 1 ? "begins" : "begin", left_out_ == 1 ? "a comment" : "comments",
                                        left_out_ == 1 ? "is" : "are", first_left_out_));
        if (const std::size_t gaps = gaps_ - (form_->header && gap_behind_first_ ? 1 : 0); gaps > 0 && gaps + 1 < rows_)
            found.push_back(
                fmt::format("{}: empty lines between its rows are left out ({}, such as line {}; where "
                            "they part two tables, give each its own file)",
                            path_, gaps, a_gap_));
        if (form_->may_count && !counted && !places && may_identify())
            found.push_back(
                fmt::format("{}: its first column{} {} and is read as data (--index yes leaves it out)", path_,
                            form_->first_name.empty() ? "" : ", " + in_quotes(form_->first_name) + ",",
                            first_.whole ? first_.padded ? "holds numbers with zeros in front" : "holds whole numbers"
                            : first_.even && rows_ >= 4 ? "is evenly spaced"
                                                        : "may name the rows"));
        return found;
    }

    std::string path_;
    double factor_ = 1.0;  ///< printed above the numbers
    std::size_t factor_line_ = 0;
    TableDialect dialect_;
    bool counts_;
    CellCheck check_;
    std::vector<TextLine> sample_;
    std::size_t sampled_ = 0;  ///< bytes
    std::optional<TableForm> form_;
    std::optional<char> decimal_;
    bool fast_ = false;
    std::string_view first_text_;  ///< of the row that is read
    NamedLines total_rows_, total_columns_, time_columns_, label_row_;
    LongKeys keys_;
    FirstColumn first_;
    std::vector<TextLine> hashed_;  ///< lines that begin like comments, until the form is known
    std::size_t left_out_ = 0;      ///< comments behind the first row
    std::size_t first_left_out_ = 0;
    std::size_t parted_ = 0;  ///< the line that announces another matrix
    std::size_t empty_ = 0;   ///< the last line if it is empty
    std::size_t gaps_ = 0;
    std::size_t a_gap_ = 0;  ///< the first one, not behind a header
    bool gap_behind_first_ = false;
    bool strips_ = false;
    std::string unsure_;  ///< the first number whose mark may separate thousands, until another shows a decimal part
    std::string unsure_place_;
    std::string open_;  ///< lines of a header in which a quote has not closed
    std::size_t open_line_ = 0;
    std::size_t line_ = 0;
    std::size_t first_line_ = 0;
    std::size_t rows_ = 0;
    MissingCells missing_;
    std::vector<double> values_;
};

}  // namespace

Table read_table(const std::string& path, const TableReading& reading) {
    const ByteFile file(path);
    reject_other_format(file, ".csv");
    TableReader reader(path, reading);
    each_line(file, [&](std::string_view line) { reader.line(line); });
    return reader.table();
}

}  // namespace spiked::sim
