#include "core/text/option_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/runtime/error.hpp"

namespace spiked {
namespace {

using Kind = ValueSpec::Kind;

/// The kind of the values that are not choices.
Kind kind_of_others(const ValueSpec& value) {
    if (value.kind != Kind::choice) return value.kind;
    return value.open ? value.others : Kind::none;
}

bool is_choice(const ValueSpec& value, std::string_view text) {
    return std::find(value.choices.begin(), value.choices.end(), text) != value.choices.end();
}

std::string whole_numbers(const ValueSpec& value) {
    if (value.most == std::numeric_limits<std::int64_t>::max())
        return fmt::format("a whole number of at least {}", value.least);
    return fmt::format("a whole number from {} to {}", value.least, value.most);
}

std::string numbers_in(const NumberRange& range) {
    if (range.least && range.most) return fmt::format("a number from {} to {}", *range.least, *range.most);
    std::vector<std::string> limits;
    if (range.least) limits.push_back(fmt::format("of at least {}", *range.least));
    if (range.above) limits.push_back(fmt::format("above {}", *range.above));
    if (range.most) limits.push_back(fmt::format("{}at most {}", limits.empty() ? "of " : "", *range.most));
    if (range.below) limits.push_back(fmt::format("below {}", *range.below));
    return fmt::format("a number{}{}", limits.empty() ? "" : " ", fmt::join(limits, " and "));
}

/// How to write a number of this kind.
std::string advice_for(const OptionSpec& option, Kind kind) {
    const ValueSpec& value = option.value;
    if (value.list)
        return kind == Kind::whole ? "separate several by commas, 0,1,2" : "separate several by commas, 0.5,1,2";
    if (kind == Kind::number) return "give one number, with digits and a point, as 0.5";
    const auto usual = to_integer(option.fallback);
    const char* before_number = option.key.empty() ? "" : option.key.starts_with('-') ? " " : "=";
    return fmt::format("write for example {}{}{}", long_name(option), before_number,
                       usual.value_or(std::clamp<std::int64_t>(2, value.least, value.most)));
}

}  // namespace

ValueSpec any_text(std::string shown) { return {.kind = Kind::text, .shown = std::move(shown)}; }
ValueSpec whole(std::string shown, std::int64_t least, std::int64_t most) {
    return {.kind = Kind::whole, .shown = std::move(shown), .least = least, .most = most};
}
ValueSpec number(std::string shown, NumberRange range) {
    return {.kind = Kind::number, .shown = std::move(shown), .range = range};
}

ValueSpec one_of(std::vector<std::string> choices, Aliases aliases) {
    std::string shown = fmt::format("{}", fmt::join(choices, "|"));
    return {
        .kind = Kind::choice, .shown = std::move(shown), .choices = std::move(choices), .aliases = std::move(aliases)};
}

ValueSpec one_of_or(std::vector<std::string> choices, const std::string& others) {
    ValueSpec value = one_of(std::move(choices));
    value.shown += "|" + others;
    value.open = true;
    return value;
}

ValueSpec one_of_or(std::vector<std::string> choices, ValueSpec number) {
    number.others = std::exchange(number.kind, Kind::choice);
    number.choices = std::move(choices);
    number.open = true;
    return number;
}

ValueSpec several(ValueSpec value, std::string shown) {
    if (shown.empty()) shown = value.shown + (value.choices.empty() ? "[," + value.shown + "...]" : "[,...]");
    value.shown = std::move(shown);
    value.list = true;
    return value;
}

std::vector<OptionSpec> in_group(const std::string& heading, std::vector<OptionSpec> options) {
    for (OptionSpec& option : options) option.group = heading;
    return options;
}

ValueSpec names_from(std::vector<std::string> topics, ValueSpec value) {
    value.topics = std::move(topics);
    return value;
}

ValueSpec file_with(std::vector<std::string> suffixes, std::string shown) {
    if (shown.empty()) shown = "FILE" + suffixes.front();
    return {.kind = Kind::text, .shown = std::move(shown), .suffixes = std::move(suffixes)};
}

bool contains(const NumberRange& range, double number) {
    return !(range.least && number < *range.least) && !(range.above && number <= *range.above) &&
           !(range.most && number > *range.most) && !(range.below && number >= *range.below);
}

bool accepts(const ValueSpec& value, std::string_view text) {
    if (is_choice(value, text)) return true;
    switch (kind_of_others(value)) {
        case Kind::text:
            return true;
        case Kind::whole: {
            const auto given = to_integer(text);
            return given && *given >= value.least && *given <= value.most;
        }
        case Kind::number: {
            const auto given = to_number(text);
            return given && contains(value.range, *given);
        }
        default:
            return false;
    }
}

void require_accepted(const OptionSpec& option, std::string_view text, std::string_view place) {
    const ValueSpec& value = option.value;
    if (accepts(value, text)) return;
    const std::string what = std::string(place) + long_name(option) + (option.key.empty() ? "" : " ");
    const Kind kind = kind_of_others(value);
    if (kind != Kind::whole && kind != Kind::number)
        throw usage_error("{}\"{}\" is not possible{}", what, text, suggestion(text, value.choices, value.aliases));
    const std::string legal = kind == Kind::whole ? whole_numbers(value) : numbers_in(value.range);
    if (!value.choices.empty())
        throw usage_error("{}\"{}\" is not possible: choose {}, or {}", what, text, legal,
                          fmt::join(value.choices, ", "));
    if (kind == Kind::whole ? to_integer(text).has_value() : to_number(text).has_value())
        throw usage_error("{}{} is not possible: choose {}", what, text, legal);
    throw usage_error("{}\"{}\" is not {}: {}", what, text, legal, advice_for(option, kind));
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

bool has_option(const std::vector<OptionSpec>& options, std::string_view name) {
    return std::any_of(options.begin(), options.end(),
                       [&](const OptionSpec& option) { return option.key == name || option.also_option == name; });
}

std::string described(const OptionSpec& option) {
    std::string notes = option.help;
    if (!option.fallback.empty()) notes += (notes.empty() ? "default " : ", default ") + option.fallback;
    if (option.key.empty()) return option.value.shown + ": " + notes;
    if (!notes.empty()) notes = " (" + notes + ")";
    if (option.key.starts_with('-'))
        return option.key + (option.value.shown.empty() ? "" : " " + option.value.shown) + notes;
    if (option.value.kind == Kind::none) return ":" + option.key + notes;
    std::string text = option.key + "=" + option.value.shown;
    if (!option.also_option.empty())
        text +=
            fmt::format(" or {}{}", option.also_option, option.value.choices.empty() ? " " + option.value.shown : "");
    return text + notes;
}

}  // namespace spiked
