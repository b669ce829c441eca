#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/io/table_cells.hpp"
#include "sim/io/table_dialect.hpp"

// What surrounds the rows of a table: headers and rows that begin like comments, the ends of MATLAB's rows, and columns
// that count the rows.

namespace spiked::sim {
namespace {

/// Whether a line names the columns: it has as many cells as the row, and none is a number.
bool names_columns(std::string_view line, std::string_view row, char delimiter) {
    const auto names = summary_of(line, delimiter, std::nullopt);
    const auto cells = summary_of(row, delimiter, std::nullopt);
    return names.cells > 1 && names.words == names.cells && cells.cells == names.cells && cells.numbers > 0;
}

/// The last comment in front of the rows names the columns where its first cell is '#', or where what is behind its
/// '#' does.
void take_hash_header(std::vector<TextLine>& sample, std::vector<TextLine>& hashed) {
    if (hashed.empty() || hashed.back().number + 1 != sample.front().number) return;
    const std::string_view text = hashed.back().text;
    const std::string_view row = sample.front().text;
    const std::size_t begin = text.find_first_not_of(" ");
    if (text[begin] != '#') return;
    for (const char delimiter : {'\t', ',', ';', '|', ' '}) {
        if (delimiter != ' ' && row.find(delimiter) == row.npos) continue;
        const std::string_view behind = text.substr(begin + 1);
        const bool alone = delimiter != ' ' && behind.starts_with(delimiter);
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

std::vector<std::size_t> counting_columns(const arma::mat& rows) {
    std::vector<std::size_t> found;
    for (std::size_t j = 0; j < rows.n_cols && rows.n_rows > 2; ++j) {
        const double first = rows(0, j);
        bool counts = first == 0.0 || first == 1.0;
        for (std::size_t i = 1; i < rows.n_rows && counts; ++i) counts = rows(i, j) == first + static_cast<double>(i);
        if (counts) found.push_back(j);
    }
    return found;
}

}  // namespace spiked::sim
