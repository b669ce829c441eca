#include "core/text/name_options.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"

namespace spiked {

NameOptions::NameOptions(const ParsedName& parsed, const std::vector<OptionSpec>& specs)
    : parsed_(parsed), specs_(specs) {
    std::vector<std::string> keys;
    std::vector<std::string> words;
    bool value_follows = false;
    for (const auto& spec : specs) {
        if (spec.key.starts_with('-')) continue;
        value_follows = value_follows || spec.key.empty();
        if (!spec.key.empty()) (spec.value.kind == ValueSpec::Kind::none ? words : keys).push_back(spec.key);
    }
    for (const auto& value : parsed.values) {
        if (!value_follows && std::find(words.begin(), words.end(), value) == words.end()) {
            std::vector<std::string> all = words;
            for (const auto& key : keys) all.push_back(key + "=");
            throw usage_error("\"{}\": {} has no variant or option \"{}\"{}", parsed.text, parsed.name, value,
                              all.empty() ? std::string("; it takes none") : suggestion(value, all));
        }
        if (std::count(parsed.values.begin(), parsed.values.end(), value) > 1)
            throw usage_error("\"{}\": {} is given twice: give it once", parsed.text, value);
    }
    for (const auto& option : parsed.options) {
        const std::string& key = option.first;
        if (std::count_if(parsed.options.begin(), parsed.options.end(), [&](const auto& o) { return o.first == key; }) >
            1)
            throw usage_error("\"{}\": {} is given twice: give it once", parsed.text, key);
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
            throw usage_error("\"{}\": {} has no option \"{}\"{}", parsed.text, parsed.name, key,
                              keys.empty() ? std::string("; it takes none") : suggestion(key, keys));
    }
}

bool NameOptions::has_word(const std::string& word) const {
    return std::find(parsed_.values.begin(), parsed_.values.end(), word) != parsed_.values.end();
}

const ValueSpec& NameOptions::value_of(const std::string& key) const {
    const auto spec = std::find_if(specs_.begin(), specs_.end(), [&](const auto& one) { return one.key == key; });
    if (spec == specs_.end()) throw precondition_error("{} is not an option of {}", key, parsed_.name);
    return spec->value;
}

std::optional<std::size_t> NameOptions::whole(const std::string& key) const {
    const auto text = parsed_.option(key);
    if (!text) return std::nullopt;
    const auto value = to_integer(*text);
    if (!value || *value < 0)
        throw usage_error("\"{}\": {} \"{}\" is not a whole number of at least 0: write for example {}:{}=1",
                          parsed_.text, key, *text, parsed_.name, key);
    const ValueSpec& legal = value_of(key);
    if (*value < legal.least)
        throw usage_error("\"{}\": {} is a whole number of at least {}, not {}", parsed_.text, key, legal.least,
                          *value);
    if (*value > legal.most)
        throw usage_error("\"{}\": {} is a whole number of at most {}, not {}", parsed_.text, key, legal.most, *value);
    return static_cast<std::size_t>(*value);
}

std::optional<double> NameOptions::number(const std::string& key, bool above_zero) const {
    const auto text = parsed_.option(key);
    if (!text) return std::nullopt;
    const auto value = to_number(*text);
    if (!value || *value < 0.0 || (above_zero && *value == 0.0))
        throw usage_error("\"{}\": {} \"{}\" is not a number {}: write for example {}:{}=0.5", parsed_.text, key, *text,
                          above_zero ? "above 0" : "of at least 0", parsed_.name, key);
    return value;
}

std::optional<std::string> NameOptions::choice(const std::string& key) const {
    auto text = parsed_.option(key);
    if (!text) return std::nullopt;
    const ValueSpec& value = value_of(key);
    if (std::find(value.choices.begin(), value.choices.end(), *text) == value.choices.end())
        throw usage_error("\"{}\": {} \"{}\" is not possible{}", parsed_.text, key, *text,
                          suggestion(*text, value.choices, value.aliases));
    return text;
}

std::size_t required_whole(const NameOptions& named, const std::string& what, const std::string& example) {
    if (named.words().size() != 1)
        throw usage_error("\"{}\": {} needs {}: write for example {}", named.text(), named.name(), what, example);
    const auto value = to_integer(named.words().front());
    if (!value || *value < 0)
        throw usage_error("\"{}\": {} \"{}\" is not a whole number of at least 0: write for example {}", named.text(),
                          what, named.words().front(), example);
    return static_cast<std::size_t>(*value);
}

}  // namespace spiked
