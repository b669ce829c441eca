#include "sim/printable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "theory/base/names.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t longest_name = 80;
constexpr std::size_t most_names = 10;

/// How many bytes at the front a terminal would obey and not show: a control character, of ASCII or behind it (U+0080
/// to U+009F), or one that turns the direction of writing (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
std::size_t obeyed(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
    if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return 2;
    if (byte(0) == 0xD8 && byte(1) == 0x9C) return 2;
    const unsigned last = byte(2);
    const bool marks = byte(1) == 0x80 && (last == 0x8E || last == 0x8F || (last >= 0xAA && last <= 0xAE));
    const bool isolates = byte(1) == 0x81 && last >= 0xA6 && last <= 0xA9;
    return byte(0) == 0xE2 && (marks || isolates) ? 3 : 0;
}

std::string escaped(std::string_view name) {
    std::string text;
    const std::string_view shown = name.substr(0, longest_name);
    for (std::size_t at = 0; at < shown.size();) {
        const std::size_t length = obeyed(shown.substr(at));
        if (length == 0) text += shown[at];
        for (std::size_t i = 0; i < length; ++i)
            text += fmt::format("\\x{:02x}", static_cast<unsigned char>(shown[at + i]));
        at += std::max<std::size_t>(1, length);
    }
    if (name.size() > longest_name) {
        leave_whole_characters(text);
        text += "...";
    }
    return text;
}

}  // namespace

void leave_whole_characters(std::string& cut) {
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0U) == 0x80U) cut.pop_back();
    if (!cut.empty() && static_cast<unsigned char>(cut.back()) >= 0xC0U) cut.pop_back();
}

std::string printable(std::string_view name) { return escaped(name); }

std::string in_quotes(std::string_view name) { return fmt::format("\"{}\"", escaped(name)); }

std::string without_control_characters(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = text.front() == '\n' ? 0 : obeyed(text);
        shown += length == 0 ? text.front() : '?';
        text.remove_prefix(std::max<std::size_t>(1, length));
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

std::string name_hint(std::string_view typed, const std::vector<std::string>& names) {
    std::vector<std::string> shown;
    shown.reserve(names.size());
    for (const auto& name : names) shown.push_back(escaped(name));
    std::string hint = suggestion(typed, shown);
    if (names.size() > most_names && hint.find("did you mean") == std::string::npos)
        hint = fmt::format("; it has {}", list_text(names));
    return hint;
}

}  // namespace spiked::sim
