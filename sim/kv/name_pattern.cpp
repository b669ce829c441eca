#include "sim/kv/name_pattern.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t side_spellings = 5;
/// The names of the sides. The first is ours; an empty one does not exist.
constexpr struct {
    Side side;
    std::string_view names[side_spellings];
} spelled_sides[] = {
    {Side::key, {"key", "keys", "k", "K", "0"}},
    {Side::value, {"value", "values", "v", "V", "1"}},
    {Side::query, {"query", "queries", "q", "Q", ""}},
};

}  // namespace

NamePattern::NamePattern(const std::string& pattern) : text_(pattern) {
    constexpr std::array<std::pair<Mark, std::string_view>, 4> marks = {
        {{Mark::layer, "{layer}"}, {Mark::side, "{side}"}, {Mark::head, "{head}"}, {Mark::chunk, "{chunk}"}}};
    std::string_view rest = text_;
    bool usable = !rest.empty();
    while (usable && !rest.empty()) {
        if (rest.front() != '{') {
            const std::size_t end = std::min(rest.find('{'), rest.size());
            parts_.push_back({Mark::text, std::string(rest.substr(0, end))});
            rest.remove_prefix(end);
            continue;
        }
        const auto known =
            std::find_if(marks.begin(), marks.end(), [&](const auto& mark) { return rest.starts_with(mark.second); });
        usable = known != marks.end() && !has(known->first);
        if (!usable) break;
        parts_.push_back({known->first, {}});
        rest.remove_prefix(known->second.size());
    }
    if (!usable)
        throw usage_error(
            "tensor pattern {} is not usable ({{layer}}, {{side}}, {{head}} and {{chunk}} may occur in it once each, "
            "and no other braces): write for example layers.{{layer}}.{{side}}",
            in_quotes(pattern));
}

bool NamePattern::has(Mark mark) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.mark == mark; });
}

std::vector<NamedPlace> NamePattern::matches(const std::vector<StoredTensor>& tensors) const {
    std::vector<NamedPlace> found;
    for (std::size_t spelling = 0; spelling < (has_side() ? side_spellings : 1) && found.empty(); ++spelling)
        for (std::size_t i = 0; i < tensors.size(); ++i)
            if (NamedPlace place{.index = i}; matches(tensors[i].name, 0, spelling, place)) found.push_back(place);
    if (!found.empty() && may_count_layers(tensors[found.front().index].name)) {
        const auto numbered = counted().matches(tensors);
        if (std::ranges::any_of(numbered, [](const NamedPlace& place) { return *place.layer > 1; })) return {};
    }
    return found;
}

NamePattern NamePattern::counted() const {
    NamePattern numbers = *this;
    for (auto& part : numbers.parts_)
        if (part.mark == Mark::side) part.mark = Mark::layer;
    return numbers;
}

bool NamePattern::may_count_layers(const std::string& name) const {
    NamedPlace place;
    return has_side() && !has(Mark::layer) && counted().matches(name, 0, 0, place);
}

bool NamePattern::matches(std::string_view name, std::size_t part, std::size_t spelling, NamedPlace& place) const {
    if (part == parts_.size()) return name.empty();
    const auto& [mark, text] = parts_[part];
    if (mark == Mark::text)
        return name.starts_with(text) && matches(name.substr(text.size()), part + 1, spelling, place);
    if (mark == Mark::side) {
        for (const auto& known : spelled_sides) {
            const std::string_view word = known.names[spelling];
            if (word.empty() || !name.starts_with(word)) continue;
            place.side = known.side;
            if (matches(name.substr(word.size()), part + 1, spelling, place)) return true;
        }
        return false;
    }
    constexpr std::size_t most_digits = 9;
    std::size_t digits = 0;
    while (digits < std::min(name.size(), most_digits) && name[digits] >= '0' && name[digits] <= '9') ++digits;
    for (; digits > 0; --digits) {
        const auto number = static_cast<std::size_t>(*to_integer(name.substr(0, digits)));
        if (mark == Mark::layer) place.layer = number;
        if (mark == Mark::head) place.head = number;
        if (mark == Mark::chunk) place.chunk = number;
        if (matches(name.substr(digits), part + 1, spelling, place)) return true;
    }
    return false;
}

std::size_t layer_of_file(const std::string& path) {
    const std::string file = std::filesystem::path(path).filename().string();
    std::size_t at = file.find("layer");
    if (at == std::string::npos) return 0;
    at = file.find_first_of("0123456789", at);
    if (at == std::string::npos) return 0;
    constexpr std::size_t most_digits = 9;
    const std::size_t end = std::min(file.find_first_not_of("0123456789", at), at + most_digits);
    return static_cast<std::size_t>(to_integer(file.substr(at, end - at)).value_or(0));
}

}  // namespace spiked::sim
