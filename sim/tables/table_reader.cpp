#include "sim/tables/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/runtime/error.hpp"
#include "sim/tables/table_cells.hpp"
#include "sim/tables/table_notes.hpp"
#include "sim/tables/table_rejections.hpp"

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
        if (met_.rows == 0)
            throw input_error("{}: empty matrix (it has no line of numbers): give at least one row", path_);
        if (!unsure_.empty()) reject_thousands(unsure_place_, unsure_, *decimal_);
        missing_.reject(met_.rows);
        reject_long_table();
        reject_joined_digits();
        Table found{.notes = {}, .guessed = form_->guessed};
        met_.counted = form_->may_count && met_.first.counts && met_.rows >= 2 && counts_rows();
        if (met_.counted) found.guessed = true;
        const std::size_t stored = form_->columns - form_->index;
        if (stored == 0) throw input_error("{}: only an index (no column of numbers is left): say --index no", path_);
        arma::mat lines(values_.data(), stored, met_.rows, false, true);
        if (met_.factor_line > 0) lines *= met_.factor;
        if (met_.counted)
            found.matrix = lines.tail_rows(stored - 1).t();
        else
            found.matrix = lines.t();
        met_.empty_corner = missing_.keeps_corner();
        met_.fractions = has_fractions();
        if (counts_) found.notes = table_notes(path_, *form_, decimal_, met_, found.matrix);
        return found;
    }

private:
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
        if (sample_.empty() && met_.factor_line == 0)
            if (const auto factor = printed_factor(text)) {
                met_.factor = *factor;
                met_.factor_line = number;
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
        if (met_.rows > 0 && text.front() == '#') reject_printed_part(path_, {std::string(text), number});
        if (met_.rows > 0 && met_.comments++ == 0) met_.first_comment = number;
    }
    [[nodiscard]] bool names_row(std::string_view text) const {
        std::size_t cells = 0;
        bool numbers = true;
        each_cell(text, form_->delimiter, [&](const TableCell& cell) {
            if (cells == form_->columns && form_->trailing && cell.text.empty()) return true;
            if (cells++ >= form_->index)
                numbers = numbers && (is_missing(cell.text) || number_with(cell.text, decimal_));
            return numbers && cells <= form_->columns;
        });
        return numbers && cells == form_->columns && cells > 1;
    }
    /// Empty lines between rows may part two tables.
    void add_gap() {
        if (++met_.gaps == 1 || (met_.gaps == 2 && met_.gap_behind_first)) met_.a_gap = empty_;
        if (!form_ && sample_.size() == 1) met_.gap_behind_first = true;
        empty_ = 0;
    }
    void begin_rows() {
        for (const auto& line : sample_) reject_printed_part(path_, line);
        take_hashed_lines(sample_, hashed_);
        met_.bars = dialect_.delimiter.value_or('|') == '|' && !dialect_.index && strip_bars(sample_);
        met_.row_ends = !dialect_.delimiter && strip_row_ends(sample_);
        // Of two numbers in such a row the comma is the delimiter.
        const auto is_pair = [](const TextLine& line) { return number_with_comma(line.text).has_value(); };
        const bool has_comma = sample_.front().text.find(',') != std::string::npos;
        if (met_.row_ends && has_comma && !dialect_.decimal && std::all_of(sample_.begin(), sample_.end(), is_pair))
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
        for (std::size_t i = 0; form_->index == 1 && i < met_.rows; ++i)
            if (!(values_[2 * i] >= 0.0) || values_[2 * i] != std::floor(values_[2 * i])) return;
        if (keys_.are_places())
            throw input_error(
                "{}: its first two columns name a row and a column, each pair once, and the third holds the number "
                "(a long table): write the matrix: {}, or say --index yes if both only name the rows",
                path_, pivot_line(*form_, decimal_));
    }

    /// Throws for lines of digits that are a number each, as in EIGENSTRAT's .geno and other files of fixed width.
    void reject_joined_digits() const {
        constexpr std::size_t few = 6, most_exact = 15;  // digits
        const FirstColumn& lines = met_.first;
        if (!counts_ || form_->columns != 1 || form_->index > 0 || !lines.whole || !lines.same_width) return;
        if (met_.rows < 2 || lines.width < few || (!lines.padded && lines.width <= most_exact)) return;
        throw input_error(
            "{}:{}: each line is {} digits (no delimiter; a number with zeros in front or of more than {} digits is "
            "rather several): part them, for example a number a digit: sed 's/./& /g' FILE > x.txt",
            path_, first_line_, lines.width, most_exact);
    }

    void find_total_columns() {
        const std::string_view names = sample_.front().text;
        const std::size_t cells = count_cells(names, form_->delimiter);
        std::size_t column = form_->columns - std::min(cells, form_->columns);
        each_cell(names, form_->delimiter, [&](const TableCell& cell) {
            if (column++ >= form_->index) {
                if (names_a_total(cell.text)) met_.total_columns.add(cell.text, "column", column);
                if (names_a_time(cell.text)) {
                    met_.time_columns.add(cell.text, "column", column);
                    constexpr std::size_t of_a_word = 4;
                    met_.plain_time = met_.plain_time || (column > 1 && cell.text.size() >= of_a_word);
                }
                if (names_labels(cell.text) && (column > 1 || form_->index > 0))
                    met_.label_columns.add(cell.text, "column", column);
            }
            return column < form_->columns;
        });
    }

    void row(std::string_view text, std::size_t number) {
        std::string inside;
        if (met_.bars) text = inside = without_bars(text);
        if (met_.row_ends) {
            const std::size_t last = text.find_last_not_of(" \t");
            if (text[last] == ';') text = text.substr(0, last);
        }
        if (!fast_ || !plain_row(text)) any_row(text, number);
        if (met_.rows == 0) first_line_ = number;
        ++met_.rows;
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
        met_.first.add(met_.rows, values_[before], first_text_);
        return true;
    }

    void any_row(std::string_view text, std::size_t number) {
        const std::size_t before = values_.size();
        CountedCells found;
        each_cell(text, form_->delimiter, [&](const TableCell& cell) {
            const std::size_t i = found.cells++;
            if (i >= form_->columns && form_->trailing && cell.text.empty()) {
                --found.cells;
                return true;
            }
            if (i <= form_->columns) found.wrong_column = cell.column;
            if (i < 2 && form_->index > 0 && form_->columns == 3) keys_.add(i, cell.text);
            if (i < form_->index && names_a_total(cell.text)) met_.total_rows.add(cell.text, "line", number);
            if (i < form_->index && met_.rows == 0 && form_->header && names_a_column(cell.text))
                met_.label_row.add(cell.text, "line", number);
            if (i < form_->index || i > form_->columns) return true;
            if (i == form_->columns && is_missing(cell.text)) return true;
            values_.push_back(value_of(cell, i, number, text));
            if (i == 0) met_.first.add(met_.rows, values_.back(), cell.text);
            return true;
        });
        if (found.cells != form_->columns) reject_count(state(), found, {std::string(text), number}, first_line_);
        values_.resize(before + found.cells - form_->index);
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
        const auto value = number_with(cell.text, decimal_);
        if (check_ && (value || number_with_point(cell.text)))
            if (const auto reason = check_(i - form_->index, value ? *value : *number_with_point(cell.text));
                !reason.empty())
                throw input_error("{}:{}:{}: {}", path_, number, cell.column, reason);
        if (value && std::isfinite(*value)) return *value;
        if (!value && !is_missing(cell.text)) reject_text(state(), cell, i, {std::string(line), number});
        if (i == form_->index && cell.text == "..") reject_printed_part(path_, {std::string(line), number});
        const bool corner = met_.rows == 0 && i == 0 && cell.text.empty() && !dialect_.header && !dialect_.index;
        return missing_.add(cell, corner, [&] { return fmt::format("{}:{}:{}", path_, number, cell.column); });
    }

    /// Whether a first column that counts is an index: a count from 1 may be data where all numbers are whole.
    [[nodiscard]] bool counts_rows() const {
        if (form_->header) return true;
        return met_.rows >= 3 && (met_.first.first == 0.0 || has_fractions());
    }
    [[nodiscard]] bool has_fractions() const {
        const auto shown = std::min<std::size_t>(values_.size(), 4096);
        return std::any_of(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(shown),
                           [](double value) { return std::isfinite(value) && value != std::floor(value); });
    }

    [[nodiscard]] TableState state() const { return {path_, dialect_, sample_, *form_, decimal_, met_.rows}; }

    std::string path_;
    TableDialect dialect_;
    bool counts_;
    CellCheck check_;
    std::vector<TextLine> sample_;
    std::size_t sampled_ = 0;  ///< bytes
    std::optional<TableForm> form_;
    std::optional<char> decimal_;
    bool fast_ = false;
    std::string_view first_text_;  ///< of the row that is read
    TableFindings met_;
    LongKeys keys_;
    std::vector<TextLine> hashed_;  ///< lines that begin like comments, until the form is known
    std::size_t parted_ = 0;        ///< the line that announces another matrix
    std::size_t empty_ = 0;         ///< the last line if it is empty
    std::string unsure_;  ///< the first number whose mark may separate thousands, until another shows a decimal part
    std::string unsure_place_;
    std::string open_;  ///< lines of a header in which a quote has not closed
    std::size_t open_line_ = 0;
    std::size_t line_ = 0;
    std::size_t first_line_ = 0;
    MissingCells missing_;
    std::vector<double> values_;
};

}  // namespace

Table table_of_lines(const std::string& path, const TableReading& reading, const TextLines& lines) {
    TableReader reader(path, reading);
    lines([&](std::string_view line) { reader.line(line); });
    return reader.table();
}

}  // namespace spiked::sim
