#include "sim/io/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/file_formats.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t chunk_bytes = 1 << 20;

struct Cell {
    std::string_view text;
    std::size_t column;  ///< of its first character, from 1
};

/// Calls `use` for each cell until it returns false. A list of cells would take many times the bytes of the line.
template <class Use>
void each_cell(std::string_view line, const Use& use) {
    std::size_t from = 0;
    while (true) {
        const std::size_t end = std::min(line.find(',', from), line.size());
        std::size_t begin = from;
        std::size_t last = end;
        while (begin < last && (line[begin] == ' ' || line[begin] == '\t')) ++begin;
        while (last > begin && (line[last - 1] == ' ' || line[last - 1] == '\t')) --last;
        if (!use(Cell{line.substr(begin, last - begin), begin + 1}) || end == line.size()) return;
        from = end + 1;
    }
}

/// Parses a number, NaN and infinities included (the caller counts them). Returns nothing for any other text and for
/// numbers too large for a double.
std::optional<double> number(std::string_view text) {
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

class Reader {
public:
    Reader(std::string path, CellCheck check) : path_(std::move(path)), check_(std::move(check)) {}

    void line(std::string_view text) {
        ++line_;
        if (line_ == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
        if (text.ends_with('\r')) text.remove_suffix(1);
        if (text.find('\0') != std::string_view::npos)
            throw input_error("{}:{}: not a text file (it holds a zero byte): give a csv of numbers", path_, line_);
        const std::size_t begin = text.find_first_not_of(" \t");
        if (begin == std::string_view::npos || text[begin] == '#') return;
        const bool first = !std::exchange(seen_text_, true);
        if (!first || !is_header(text)) row(text);
    }

    [[nodiscard]] arma::mat matrix() {
        if (rows_ == 0) throw input_error("{}: empty matrix (it has no line of numbers): give at least one row", path_);
        return arma::mat(values_.data(), columns_, rows_, false, true).t();
    }

private:
    /// Whether no cell begins like a number. A cell that begins like one and is not is an error, not a header.
    static bool is_header(std::string_view line) {
        bool header = true;
        each_cell(line, [&](const Cell& cell) {
            const char first = cell.text.empty() ? '0' : cell.text.front();
            header =
                !number(cell.text) && !(first >= '0' && first <= '9') && first != '-' && first != '+' && first != '.';
            return header;
        });
        return header;
    }
    void row(std::string_view line) {
        const auto cells = static_cast<std::size_t>(1 + std::count(line.begin(), line.end(), ','));
        if (rows_ == 0) {
            columns_ = cells;
            first_line_ = line_;
        }
        std::size_t i = 0;
        std::size_t wrong_column = 0;  // where the first superfluous cell, or the last of too few, begins
        each_cell(line, [&](const Cell& cell) {
            const auto value = number(cell.text);
            if (!value)
                throw input_error(
                    "{}:{}:{}: {} is not a number (cell {} of {}; commas separate cells, a point decimals): "
                    "correct the cell",
                    path_, line_, cell.column, in_quotes(cell.text), i + 1, cells);
            if (check_)
                if (const auto reason = check_(i, *value); !reason.empty())
                    throw input_error("{}:{}:{}: {}", path_, line_, cell.column, reason);
            values_.push_back(*value);
            if (i++ <= columns_) wrong_column = cell.column;
            return true;
        });
        if (cells != columns_)
            throw input_error("{}:{}:{}: {} cells (line {} has {}; every row needs the same number): correct the line",
                              path_, line_, wrong_column, cells, first_line_, columns_);
        ++rows_;
    }

    std::string path_;
    CellCheck check_;
    std::size_t line_ = 0;
    std::size_t first_line_ = 0;
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;
    bool seen_text_ = false;
    std::vector<double> values_;
};

}  // namespace

arma::mat read_csv(const std::string& path) { return read_csv(path, {}); }

arma::mat read_csv(const std::string& path, const CellCheck& check) {
    const ByteFile file(path);
    reject_other_format(file, ".csv");
    Reader reader(path, check);
    std::string pending;
    for (std::uint64_t offset = 0; offset < file.size();) {
        const std::size_t before = pending.size();
        const std::uint64_t count = std::min<std::uint64_t>(chunk_bytes, file.size() - offset);
        pending.resize(before + count);
        file.read(offset, std::as_writable_bytes(std::span(pending).subspan(before)));
        offset += count;
        std::size_t from = 0;
        for (std::size_t end = 0; (end = pending.find('\n', std::max(from, before))) != std::string::npos;
             from = end + 1)
            reader.line(std::string_view(pending).substr(from, end - from));
        pending.erase(0, from);
    }
    if (!pending.empty()) reader.line(pending);
    return reader.matrix();
}

}  // namespace spiked::sim
