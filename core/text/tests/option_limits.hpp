#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/text/option_spec.hpp"

namespace spiked {

/// Values that the option does not accept: numbers just outside its limits, and a word in the place of a number or of a
/// choice. None for switches and for any text.
inline std::vector<std::string> values_not_accepted(const ValueSpec& value) {
    const auto kind = value.kind == ValueSpec::Kind::choice && value.open ? value.others : value.kind;
    std::vector<std::string> texts;
    const auto add = [&](auto number) { texts.push_back(fmt::format("{}", number)); };
    if (kind == ValueSpec::Kind::whole) {
        add(value.least - 1);
        if (value.most < std::numeric_limits<std::int64_t>::max()) add(value.most + 1);
        add("2.5");
    }
    if (kind == ValueSpec::Kind::number) {
        if (value.range.least) add(*value.range.least - 0.01);
        if (value.range.above) add(*value.range.above);
        if (value.range.most) add(*value.range.most + 0.01);
        if (value.range.below) add(*value.range.below);
        add("inf");
    }
    if (kind != ValueSpec::Kind::none && kind != ValueSpec::Kind::text) add("many");
    return texts;
}

/// Texts of `key=value`, or of a value that follows a name, that the option does not accept; none for options of
/// commands.
inline std::vector<std::string> texts_not_accepted(const OptionSpec& option) {
    std::vector<std::string> texts;
    if (option.key.starts_with('-')) return texts;
    for (const auto& value : values_not_accepted(option.value))
        texts.push_back(option.key.empty() ? value : option.key + "=" + value);
    return texts;
}

}  // namespace spiked
