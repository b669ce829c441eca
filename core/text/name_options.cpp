#include "core/text/name_options.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"

namespace spiked {

NameOptions::NameOptions(const ParsedName& parsed, std::vector<std::string> legal, std::vector<std::string> words)
    : parsed_(parsed) {
    for (const auto& value : parsed.values) {
        if (std::find(words.begin(), words.end(), value) == words.end()) {
            std::vector<std::string> all = words;
            for (const auto& key : legal) all.push_back(key + "=");
            throw usage_error("\"{}\": {} has no reading or option \"{}\"{}", parsed.text, parsed.name, value,
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
        if (std::find(legal.begin(), legal.end(), key) == legal.end())
            throw usage_error("\"{}\": {} has no option \"{}\"{}", parsed.text, parsed.name, key,
                              legal.empty() ? std::string("; it takes none") : suggestion(key, legal));
    }
}

bool NameOptions::has_word(const std::string& word) const {
    return std::find(parsed_.values.begin(), parsed_.values.end(), word) != parsed_.values.end();
}

std::optional<std::size_t> NameOptions::whole(const std::string& key) const {
    const auto text = parsed_.option(key);
    if (!text) return std::nullopt;
    const auto value = to_integer(*text);
    if (!value || *value < 0)
        throw usage_error("\"{}\": {} \"{}\" is not a whole number of at least 0: write for example {}:{}=1",
                          parsed_.text, key, *text, parsed_.name, key);
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

std::optional<std::size_t> NameOptions::choice(const std::string& key, const std::vector<std::string>& choices) const {
    const auto text = parsed_.option(key);
    if (!text) return std::nullopt;
    const auto found = std::find(choices.begin(), choices.end(), *text);
    if (found == choices.end())
        throw usage_error("\"{}\": {} \"{}\" is not possible{}", parsed_.text, key, *text, suggestion(*text, choices));
    return static_cast<std::size_t>(found - choices.begin());
}

std::size_t required_whole(const ParsedName& parsed, const std::string& what, const std::string& example) {
    if (parsed.values.size() != 1)
        throw usage_error("\"{}\": {} needs {}: write for example {}", parsed.text, parsed.name, what, example);
    const auto value = to_integer(parsed.values.front());
    if (!value || *value < 0)
        throw usage_error("\"{}\": {} \"{}\" is not a whole number of at least 0: write for example {}", parsed.text,
                          what, parsed.values.front(), example);
    return static_cast<std::size_t>(*value);
}

std::vector<std::string> keys_of(const std::vector<std::string>& options) {
    std::vector<std::string> keys;
    for (const auto& option : options)
        if (const std::size_t end = option.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
            end < option.size() && option[end] == '=')
            keys.push_back(option.substr(0, end));
    return keys;
}

std::size_t position_of(std::string_view word, std::string_view what, const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i)
        if (word == words[i]) return i;
    throw usage_error("unknown {} \"{}\"{}", what, word, suggestion(word, words));
}

}  // namespace spiked
