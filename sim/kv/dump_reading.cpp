#include "sim/kv/dump_reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/kv/cache_layout.hpp"
#include "sim/kv/dump_completeness.hpp"
#include "sim/kv/dump_formats.hpp"
#include "sim/kv/dump_scales.hpp"
#include "sim/kv/name_pattern.hpp"

namespace spiked::sim {
namespace {

std::vector<std::string> plain_layout_names() {
    std::vector<std::string> names;
    for (const auto& layout : all_layouts()) names.push_back(layout.text());
    return names;
}

}  // namespace

std::optional<std::vector<std::size_t>> parse_block_table(std::string text) {
    const std::size_t first = text.find_first_not_of("[ \t\r\n");
    const std::size_t last = text.find_last_not_of("], \t\r\n");
    if (first == std::string::npos || last == std::string::npos || last < first) return std::nullopt;
    text = text.substr(first, last + 1 - first);
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\t' || c == '\r' || c == '\n'; }, ' ');
    std::vector<std::size_t> table;
    for (const auto& group : split(text, ',')) {
        const std::size_t before = table.size();
        for (const auto& word : split(group, ' ')) {
            if (word.empty()) continue;
            const auto number = to_integer(word);
            if (!number || *number < 0) return std::nullopt;
            table.push_back(static_cast<std::size_t>(*number));
        }
        if (table.size() == before) return std::nullopt;
    }
    std::vector<std::size_t> sorted = table;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return std::nullopt;
    return table;
}

std::optional<std::size_t> stated_tokens(const Metadata& metadata) {
    const auto* text = find_metadata(metadata, "tokens");
    if (text == nullptr) return std::nullopt;
    const auto value = to_integer(*text);
    if (!value || *value <= 0) return std::nullopt;
    return static_cast<std::size_t>(*value);
}

TokenRange token_range(const std::string& text, std::size_t tokens) {
    const std::size_t colon = text.find(':');
    const auto bound = [&](const std::string& word, std::size_t otherwise) {
        if (word.empty()) return otherwise;
        const auto number = to_integer(word);
        if (!number || colon == std::string::npos)
            throw usage_error(
                "token range {} is not FIRST:LAST (numbers from 0, LAST itself is left out, either may be missing): "
                "write for example 4:1020",
                in_quotes(text));
        const auto size = static_cast<std::int64_t>(tokens);
        return static_cast<std::size_t>(std::clamp<std::int64_t>(*number < 0 ? *number + size : *number, 0, size));
    };
    const std::size_t first = bound(text.substr(0, colon), 0);
    const std::size_t end = bound(colon == std::string::npos ? "" : text.substr(colon + 1), tokens);
    return {first, std::max(first, end)};
}

void check_options(const DumpOptions& options) {
    if (!options.tensor_pattern.empty()) (void)NamePattern(options.tensor_pattern);
    if (!options.format.empty() && dump_formats().find(options.format) == nullptr)
        throw usage_error("format {} is unknown{}", in_quotes(options.format),
                          suggestion(options.format, dump_formats().names()));
    if (!options.layout.empty() && !parse_side_layouts(options.layout))
        throw usage_error(
            "layout {} is unknown (it names the stored axes in their order, for example head,token,dim or "
            "batch,head,token,dim){}",
            in_quotes(options.layout), suggestion(options.layout, plain_layout_names()));
    if (!options.tokens.empty()) (void)token_range(options.tokens, 0);
    if (const auto scale = to_number(options.scale); scale && !is_usable_scale(*scale))
        throw usage_error("scale {} is not usable (a positive number is needed): correct --scale", options.scale);
    for (const std::string& text : {options.scale, options.zero_point})
        if (!text.empty() && !to_number(text)) (void)NamePattern(text);
    if (!options.codes.empty() && !find_enum<CodeType>(options.codes))
        throw usage_error("codes {} are unknown{}", in_quotes(options.codes),
                          suggestion(options.codes, names_of<CodeType>(), aliases_of<CodeType>()));
    if (!options.block_table.empty() && !parse_block_table(options.block_table))
        throw usage_error("block table {} is not a list of pages from 0, each once: write for example 3,1,7",
                          in_quotes(options.block_table));
}

namespace {

/// A part of a name: where it begins and its length.
using Run = std::pair<std::size_t, std::size_t>;

/// The longest parts of a name in which `holds` is true for every character, at most eight.
template <class Holds>
std::vector<Run> runs_of(const std::string& name, const Holds& holds) {
    constexpr std::size_t most = 8;
    std::vector<Run> runs;
    for (std::size_t at = 0; at < name.size() && runs.size() < most;) {
        std::size_t end = at;
        while (end < name.size() && holds(name[end])) ++end;
        if (end > at) runs.emplace_back(at, end - at);
        at = end + 1;
    }
    return runs;
}

/// The patterns that a name may follow, of which the first are likelier.
std::vector<std::string> patterns_of(const std::string& name) {
    static constexpr std::string_view words[] = {"key", "keys", "k", "K", "value", "values", "v", "V"};
    constexpr std::size_t longest = 200;
    if (name.size() > longest || name.find_first_of("{}") != name.npos) return {};
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto numbers = runs_of(name, is_digit);
    std::vector<Run> sides = runs_of(name, is_letter);
    std::erase_if(sides, [&](const Run& run) {
        return std::ranges::find(words, std::string_view(name).substr(run.first, run.second)) == std::end(words);
    });
    std::ranges::reverse(sides);
    sides.emplace_back(0, 0);  // without a word
    std::vector<std::string> patterns;
    std::vector<std::vector<Run>> counted;  // the numbers that count layers and heads
    for (const Run& number : numbers) counted.push_back({number});
    if (numbers.size() > 1) counted.push_back({numbers[0], numbers[1]});
    if (numbers.empty()) counted.emplace_back();
    for (const auto& side : sides)
        for (const auto& counts : counted) {
            std::vector<std::pair<Run, std::string>> marks;
            if (side.second > 0) marks.emplace_back(side, "{side}");
            for (const Run& number : counts) marks.emplace_back(number, number == counts[0] ? "{layer}" : "{head}");
            std::ranges::sort(marks, std::greater<>());
            std::string pattern = name;
            for (const auto& [run, mark] : marks) pattern.replace(run.first, run.second, mark);
            patterns.push_back(pattern);
        }
    return patterns;
}

}  // namespace

std::string guessed_pattern(const TensorContainer& file) {
    constexpr std::size_t most_names = 8, most_tensors = 256;
    const auto& all = file.tensors();
    const std::vector<StoredTensor> tensors(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most_tensors)));
    std::string best;
    std::size_t most = 0;
    for (std::size_t i = 0; i < std::min(tensors.size(), most_names); ++i)
        for (const auto& text : patterns_of(tensors[i].name)) {
            const NamePattern pattern(text);
            const auto places = pattern.matches(tensors);
            const auto is_value = [](const NamedPlace& place) { return place.side == Side::value; };
            const auto values = static_cast<std::size_t>(std::ranges::count_if(places, is_value));
            const bool one_side = pattern.has_side() && (values == 0 || values == places.size());
            const bool too_few = !pattern.has_side() && 2 * places.size() <= tensors.size();
            if (places.size() <= most || one_side || too_few || text == default_pattern) continue;
            best = text;
            most = places.size();
        }
    return best;
}

std::vector<std::string> possible_formats(const TensorContainer& file) {
    const auto& tensors = file.tensors();
    if (!unread_form(file).empty()) return {};
    if (!NamePattern(default_pattern).matches(tensors).empty()) return {};
    // Where sides have layouts of their own, shapes tell them: they differ, and the sizes of the axes are the same.
    const auto fit = [&](const SideLayouts& layouts, const std::vector<NamedPlace>& places) {
        const auto shape_of = [&](Side side) -> const std::vector<std::size_t>* {
            const auto held = std::ranges::find(places, std::optional(side), &NamedPlace::side);
            return held == places.end() ? nullptr : &tensors[held->index].shape;
        };
        const auto& [keys, values, queries] = layouts;
        if (!keys || !values) return false;
        if (keys->axes == values->axes) return keys->fits(tensors[places.front().index].shape);
        const auto *key = shape_of(Side::key), *value = shape_of(Side::value);
        if (key == nullptr || value == nullptr || *key == *value || !keys->fits(*key) || !values->fits(*value))
            return false;
        return std::ranges::all_of(keys->axes, [&, &k = *keys, &v = *values](CacheAxis axis) {
            return k.size(axis, *key) == v.size(axis, *value);
        });
    };
    const auto may_be = [&](const DumpFormat& format) {
        for (const auto& pattern : format.patterns) {
            const NamePattern names(pattern);
            const auto places = names.matches(tensors);
            if (places.empty() || names.may_count_layers(tensors[places.front().index].name)) continue;
            return std::any_of(format.layouts.begin(), format.layouts.end(),
                               [&](const auto& text) { return fit(*parse_side_layouts(text), places); });
        }
        return false;
    };
    std::vector<std::string> names;
    for (const auto& format : dump_formats())
        if (may_be(format)) names.push_back(format.name);
    return names;
}

std::string pattern_advice(const std::string& guess) {
    if (guess.empty()) return "the names of the cache with --pattern, for example {side}_cache.{layer}";
    return fmt::format("--pattern '{}' where that names the cache{}", printable(guess),
                       guess.find("{side}") != guess.npos ? "" : ", and name the axes with --layout, side among them");
}

}  // namespace spiked::sim
