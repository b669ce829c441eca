#include "sim/printable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "theory/base/names.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t longest_name = 80;
constexpr std::size_t most_names = 10;

std::string escaped(std::string_view name) {
    std::string text;
    for (const char c : name.substr(0, longest_name)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F)
            text += fmt::format("\\x{:02x}", byte);
        else
            text += c;
    }
    if (name.size() > longest_name) {
        // A cut inside a UTF-8 sequence would leave half a character.
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) text.pop_back();
        if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0U) text.pop_back();
        text += "...";
    }
    return text;
}

}  // namespace

std::string printable(std::string_view name) { return escaped(name); }

std::string in_quotes(std::string_view name) { return fmt::format("\"{}\"", escaped(name)); }

std::string without_control_characters(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7F; }, '?');
    return text;
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return without_control_characters(std::move(text));
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
