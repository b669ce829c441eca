#include "core/text/printable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/text/names.hpp"
#include "core/text/utf8.hpp"

namespace spiked {
namespace {

constexpr std::size_t longest_name = 80;
constexpr std::size_t most_names = 10;

/// Whether a character may be printed as it is: not a control character, and not an invalid byte, which is a control
/// character in some encodings.
bool is_shown(const Character& character) { return character.valid && !is_control(character.code); }

std::string escaped(std::string_view name) {
    std::string shown(name.substr(0, longest_name));
    if (name.size() > longest_name) trim_partial_character(shown);
    std::string text;
    for (std::string_view rest = shown; !rest.empty();) {
        const Character character = first_character(rest);
        for (const char byte : rest.substr(0, character.bytes))
            text +=
                is_shown(character) ? std::string(1, byte) : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
        rest.remove_prefix(character.bytes);
    }
    return name.size() > longest_name ? text + "..." : text;
}

}  // namespace

void trim_partial_character(std::string& cut) {
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0U) == 0x80U) cut.pop_back();
    if (!cut.empty() && static_cast<unsigned char>(cut.back()) >= 0xC0U) cut.pop_back();
}

std::string printable(std::string_view name) { return escaped(name); }

std::string in_quotes(std::string_view name) { return fmt::format("\"{}\"", escaped(name)); }

std::string without_control_characters(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const Character character = first_character(text);
        if (is_shown(character) || character.code == '\n')
            shown += text.substr(0, character.bytes);
        else
            shown += '?';
        text.remove_prefix(character.bytes);
    }
    return shown;
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return without_control_characters(text);
}

std::string shape_text(std::span<const std::size_t> shape) {
    constexpr std::size_t most_axes = 8;
    if (shape.size() <= most_axes) return fmt::format("[{}]", fmt::join(shape, ", "));
    return fmt::format("[{}, ...] with {} axes", fmt::join(shape.first(most_axes), ", "), shape.size());
}

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 1'000'000) return fmt::format("{} bytes", bytes);
    const auto value = static_cast<double>(bytes);
    if (bytes < 1'000'000'000) return fmt::format("{} bytes ({:.2f} MB)", bytes, value / 1e6);
    return fmt::format("{} bytes ({:.2f} GB)", bytes, value / 1e9);
}

std::string list_text(const std::vector<std::string>& names) {
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min(names.size(), most_names); ++i) shown.push_back(in_quotes(names[i]));
    std::string text = fmt::format("{}", fmt::join(shown, ", "));
    if (names.size() > most_names) text += fmt::format(" and {} more", names.size() - most_names);
    return text;
}

std::string name_hint(std::string_view name, const std::vector<std::string>& names) {
    std::vector<std::string> shown;
    shown.reserve(names.size());
    for (const auto& one : names) shown.push_back(escaped(one));
    std::string hint = suggestion(name, shown);
    if (names.size() > most_names && hint.find("did you mean") == std::string::npos)
        hint = fmt::format("; it has {}", list_text(names));
    return hint;
}

}  // namespace spiked
