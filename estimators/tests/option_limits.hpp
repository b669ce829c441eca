#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/text/option_spec.hpp"

namespace spiked::estimators {

/// Texts of `key=value`, or of a value that follows a name, just outside the limits of the option; none for options of
/// commands and for those without limits.
inline std::vector<std::string> beyond_limits(const OptionSpec& option) {
    std::vector<std::string> texts;
    if (option.key.starts_with('-')) return texts;
    const std::string before = option.key.empty() ? "" : option.key + "=";
    const auto add = [&](auto number) { texts.push_back(fmt::format("{}{}", before, number)); };
    const ValueSpec& value = option.value;
    if (value.kind == ValueSpec::Kind::whole) {
        add(value.least - 1);
        if (value.most < std::numeric_limits<std::int64_t>::max()) add(value.most + 1);
    }
    if (value.range.least) add(*value.range.least - 0.01);
    if (value.range.above) add(*value.range.above);
    if (value.range.most) add(*value.range.most + 0.01);
    if (value.range.below) add(*value.range.below);
    return texts;
}

}  // namespace spiked::estimators
