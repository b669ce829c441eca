#include "core/text/names.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace spiked {

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& letter : lower)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return lower;
}

namespace {

/// The candidates that begin with the word, if it has at least three letters.
std::vector<std::string> beginning_with(std::string_view word, std::span<const std::string> candidates) {
    std::vector<std::string> found;
    for (const auto& candidate : candidates)
        if (word.size() >= 3 && lower_case(candidate).starts_with(word)) found.push_back(candidate);
    return found;
}

/// The number of edits (insert, delete, replace, swap of neighbours) that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> ParsedName::option(std::string_view key) const {
    for (const auto& [name_of, value] : options)
        if (name_of == key) return value;
    return std::nullopt;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    while (true) {
        const std::size_t at = text.find(separator, from);
        parts.emplace_back(text.substr(from, at - from));
        if (at == std::string_view::npos) return parts;
        from = at + 1;
    }
}

ParsedName parse_name(std::string_view text) {
    ParsedName parsed;
    parsed.text = text;
    auto parts = split(text, ':');
    parsed.name = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const std::size_t equals = parts[i].find('=');
        if (equals == std::string::npos)
            parsed.values.push_back(parts[i]);
        else
            parsed.options.emplace_back(parts[i].substr(0, equals), parts[i].substr(equals + 1));
    }
    return parsed;
}

std::optional<double> to_number(std::string_view text) {
    double value = 0.0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        return std::nullopt;
    return value;
}

std::optional<std::int64_t> to_integer(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::string> nearest(std::string_view written, std::span<const std::string> candidates,
                                   const Aliases& aliases) {
    // Longer words are certainly no misspellings, and the cost of a distance is the product of both lengths.
    if (written.empty() || written.size() > 1000) return std::nullopt;
    const std::string word = lower_case(written);
    for (const auto& [other, ours] : aliases)
        if (word == other)
            for (const auto& candidate : candidates)
                if (parse_name(candidate.substr(0, candidate.find('+'))).name == ours) return candidate;
    std::size_t too_far = (word.size() <= 3 ? 1 : std::max<std::size_t>(2, word.size() / 3)) + 1;
    std::optional<std::string> found;
    for (const auto& candidate : candidates) {
        if (std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size()) >= too_far) continue;
        const std::size_t distance = edit_distance(word, lower_case(candidate));
        if (distance >= too_far) continue;
        too_far = distance;
        found = candidate;
    }
    if (found) return found;
    const auto longer = beginning_with(word, candidates);
    return longer.size() == 1 ? std::optional(longer.front()) : std::nullopt;
}

std::string suggestion(std::string_view written, std::span<const std::string> candidates, const Aliases& aliases) {
    if (candidates.empty()) return "";
    if (const auto near = nearest(written, candidates, aliases)) return fmt::format("; did you mean \"{}\"?", *near);
    if (const auto longer = beginning_with(lower_case(written.substr(0, 1000)), candidates); !longer.empty())
        return fmt::format("; one of: {}", fmt::join(longer, ", "));
    return fmt::format("; one of: {}", fmt::join(candidates, ", "));
}

std::string quoted_for_shell(std::string_view text) {
    std::string quoted = "'";
    for (const char letter : text) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
    return quoted + "'";
}

std::string shell_word(const std::string& word) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
    return !word.empty() && word.find_first_not_of(plain) == std::string::npos ? word : quoted_for_shell(word);
}

}  // namespace spiked
