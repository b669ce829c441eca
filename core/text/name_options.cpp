#include "core/text/name_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/runtime/error.hpp"

namespace spiked {

std::string suggested_option(std::string_view value, const std::vector<OptionSpec>& specs) {
    std::vector<std::string> written;
    for (const auto& spec : specs)
        if (!spec.key.empty() && std::ranges::find(spec.value.choices, value) != spec.value.choices.end())
            written.push_back(fmt::format("\"{}{}{}\"", long_name(spec), spec.key.starts_with('-') ? " " : "=", value));
    return written.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(written, " or "));
}

NameOptions::NameOptions(const ParsedName& parsed, const std::vector<OptionSpec>& specs)
    : parsed_(parsed), specs_(specs) {
    const std::string place = fmt::format("\"{}\": ", parsed.text);
    std::vector<std::string> keys;
    std::vector<std::string> words;
    const OptionSpec* behind_name = nullptr;
    for (const auto& spec : specs) {
        if (spec.key.starts_with('-')) continue;
        if (spec.key.empty())
            behind_name = &spec;
        else
            (spec.value.kind == ValueSpec::Kind::none ? words : keys).push_back(spec.key);
    }
    for (const auto& value : parsed.values) {
        if (std::find(words.begin(), words.end(), value) == words.end()) {
            std::vector<std::string> all = words;
            for (const auto& key : keys) all.push_back(key + "=");
            if (behind_name == nullptr) {
                std::string instead = suggested_option(value, specs);
                if (instead.empty()) instead = all.empty() ? "; it takes none" : suggestion(value, all);
                throw usage_error("{}{} has no variant or option \"{}\"{}", place, parsed.name, value, instead);
            }
            require_accepted(*behind_name, value, place);
        }
        if (std::count(parsed.values.begin(), parsed.values.end(), value) > 1)
            throw usage_error("{}{} is given twice: give it once", place, value);
    }
    for (const auto& option : parsed.options) {
        const std::string& key = option.first;
        if (std::count_if(parsed.options.begin(), parsed.options.end(), [&](const auto& o) { return o.first == key; }) >
            1)
            throw usage_error("{}{} is given twice: give it once", place, key);
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
            std::string instead = behind_name == nullptr
                                      ? std::string("; it takes none")
                                      : fmt::format("; write {}:{}", parsed.name, behind_name->value.shown);
            const std::string nearest = keys.empty() ? "" : suggestion(key, keys);
            if (behind_name != nullptr && accepts(behind_name->value, option.second) && parsed.values.empty() &&
                !nearest.starts_with("; did you mean"))
                instead = fmt::format("; did you mean \"{}:{}\"?", parsed.name, option.second);
            else if (!keys.empty())
                instead = nearest;
            throw usage_error("{}{} has no option \"{}\"{}", place, parsed.name, key, instead);
        }
        require_accepted(*std::find_if(specs.begin(), specs.end(), [&](const auto& spec) { return spec.key == key; }),
                         option.second, place);
    }
}

bool NameOptions::has_word(const std::string& word) const {
    return std::find(parsed_.values.begin(), parsed_.values.end(), word) != parsed_.values.end();
}

bool NameOptions::takes(const std::string& key) const {
    return std::any_of(specs_.begin(), specs_.end(), [&](const auto& spec) { return spec.key == key; });
}

std::optional<std::size_t> NameOptions::whole(const std::string& key) const {
    const auto text = parsed_.option(key);
    return text ? std::optional(static_cast<std::size_t>(to_integer(*text).value())) : std::nullopt;
}

std::optional<double> NameOptions::number(const std::string& key) const {
    const auto text = parsed_.option(key);
    return text ? std::optional(to_number(*text).value()) : std::nullopt;
}

std::size_t NameOptions::whole_or_default(const std::string& key) const {
    const auto value = to_integer(choice_or_default(key));
    if (!value) throw precondition_error("{} of {} has no whole number as its default", key, parsed_.name);
    return static_cast<std::size_t>(*value);
}

double NameOptions::number_or_default(const std::string& key) const {
    const auto value = to_number(choice_or_default(key));
    if (!value) throw precondition_error("{} of {} has no number as its default", key, parsed_.name);
    return *value;
}

std::string NameOptions::choice_or_default(const std::string& key) const {
    if (auto text = parsed_.option(key)) return *text;
    const auto spec = std::find_if(specs_.begin(), specs_.end(), [&](const auto& one) { return one.key == key; });
    if (spec == specs_.end()) throw precondition_error("{} is not an option of {}", key, parsed_.name);
    return spec->fallback;
}

std::size_t required_whole(const NameOptions& named, const std::string& what, const std::string& example) {
    if (named.words().size() != 1)
        throw usage_error("\"{}\": {} needs {}: write for example {}", named.text(), named.name(), what, example);
    return static_cast<std::size_t>(to_integer(named.words().front()).value());
}

}  // namespace spiked
