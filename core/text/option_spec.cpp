#include "core/text/option_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spiked {

ValueSpec any_text(std::string shown) { return {.kind = ValueSpec::Kind::text, .shown = std::move(shown)}; }
ValueSpec whole(std::string shown, std::int64_t least, std::int64_t most) {
    return {.kind = ValueSpec::Kind::whole, .shown = std::move(shown), .least = least, .most = most};
}
ValueSpec number(std::string shown, NumberRange range) {
    return {.kind = ValueSpec::Kind::number, .shown = std::move(shown), .range = range};
}

ValueSpec one_of(std::vector<std::string> choices, Aliases aliases) {
    std::string shown = fmt::format("{}", fmt::join(choices, "|"));
    return {.kind = ValueSpec::Kind::choice,
            .shown = std::move(shown),
            .choices = std::move(choices),
            .aliases = std::move(aliases)};
}

ValueSpec one_of_or(std::vector<std::string> choices, const std::string& others) {
    ValueSpec value = one_of(std::move(choices));
    value.shown += "|" + others;
    value.open = true;
    return value;
}

ValueSpec several(ValueSpec value, std::string shown) {
    if (shown.empty()) shown = value.shown + (value.choices.empty() ? "[," + value.shown + "...]" : "[,...]");
    value.shown = std::move(shown);
    value.list = true;
    return value;
}

ValueSpec names_from(std::vector<std::string> topics, ValueSpec value) {
    value.topics = std::move(topics);
    return value;
}

ValueSpec file_with(std::vector<std::string> suffixes, std::string shown) {
    if (shown.empty()) shown = "FILE" + suffixes.front();
    return {.kind = ValueSpec::Kind::text, .shown = std::move(shown), .suffixes = std::move(suffixes)};
}

bool contains(const NumberRange& range, double number) {
    return !(range.least && number < *range.least) && !(range.above && number <= *range.above) &&
           !(range.most && number > *range.most) && !(range.below && number >= *range.below);
}

std::string long_name(const OptionSpec& option) {
    const std::size_t comma = option.key.find(',');
    return comma == std::string::npos ? option.key : option.key.substr(comma + 1);
}

std::string json_key(const OptionSpec& option) {
    const std::string name = long_name(option);
    std::string key = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    std::replace(key.begin(), key.end(), '-', '_');
    return key;
}

std::string described(const OptionSpec& option) {
    std::string notes = option.help;
    if (!option.fallback.empty()) notes += (notes.empty() ? "default " : ", default ") + option.fallback;
    if (option.key.empty()) return option.value.shown + ": " + notes;
    if (!notes.empty()) notes = " (" + notes + ")";
    if (option.key.starts_with('-'))
        return option.key + (option.value.shown.empty() ? "" : " " + option.value.shown) + notes;
    if (option.value.kind == ValueSpec::Kind::none) return ":" + option.key + notes;
    std::string text = option.key + "=" + option.value.shown;
    if (!option.also_option.empty())
        text +=
            fmt::format(" or {}{}", option.also_option, option.value.choices.empty() ? " " + option.value.shown : "");
    return text + notes;
}

}  // namespace spiked
