#include "core/text/wrapping.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/text/names.hpp"

namespace spiked {
namespace {

/// The parts of a word behind which a line may end: at its commas and bars.
std::vector<std::string> parts_of(const std::string& word) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < word.size();) {
        const std::size_t end = std::min(word.find_first_of(",|", at), word.size() - 1) + 1;
        parts.push_back(word.substr(at, end - at));
        at = end;
    }
    return parts;
}

/// Where the words of a line begin: behind its blanks, and behind columns that end with two blanks before `most`.
std::size_t begin_of_words(const std::string& line, std::size_t most) {
    const std::size_t gap = line.rfind("  ", most);
    return std::min(gap == std::string::npos ? line.find_first_not_of(' ') : line.find_first_not_of(' ', gap),
                    line.size());
}

bool has_command(const std::string& line) {
    return line.compare(begin_of_words(line, 0), 7, "spiked ") == 0 || line.find(": spiked ") != std::string::npos;
}

}  // namespace

std::string wrapped_text(std::string begin, std::string_view text, std::size_t columns, std::size_t indent) {
    std::string lines;
    std::string line = std::move(begin);
    bool empty = true;  // no word stands in this line
    for (const auto& word : split(text, ' ')) {
        std::string blank = " ";
        for (const auto& part : word.size() + indent > columns ? parts_of(word) : std::vector{word}) {
            if (!empty && line.size() + blank.size() + part.size() > columns) {
                lines += line + "\n";
                line.assign(indent, ' ');
                empty = true;
            }
            line += (empty ? "" : blank) + part;
            empty = false;
            blank.clear();
        }
    }
    return lines + line;
}

std::string wrapped_lines(const std::string& text, std::size_t columns) {
    std::string lines;
    for (const auto& line : split(text, '\n')) {
        const std::size_t begin = begin_of_words(line, columns / 2);
        const bool whole = columns == 0 || line.size() <= columns || has_command(line);
        lines += (whole ? line : wrapped_text(line.substr(0, begin), line.substr(begin), columns, begin)) + "\n";
    }
    lines.pop_back();
    return lines;
}

}  // namespace spiked
