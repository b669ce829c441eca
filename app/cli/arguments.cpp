#include "app/cli/command.hpp"

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"

namespace spiked::app {
namespace {

double number_in(std::string_view option, const std::string& text) {
    const auto value = to_number(text);
    if (!value) throw precondition_error("{} \"{}\" is read as a number", option, text);
    return *value;
}

std::size_t count_in(std::string_view option, const std::string& text) {
    const auto value = to_integer(text);
    if (!value || *value < 0) throw precondition_error("{} \"{}\" is read as a count", option, text);
    return static_cast<std::size_t>(*value);
}

}  // namespace

std::string Arguments::text(std::string_view option) const {
    const std::string key(option);
    if (const auto found = given.find(key); found != given.end() && !found->second.empty()) return found->second.back();
    const auto fallback = fallbacks.find(key);
    return fallback == fallbacks.end() ? "" : fallback->second;
}

std::vector<std::string> Arguments::list(std::string_view option) const {
    std::vector<std::string> values;
    const auto found = given.find(std::string(option));
    const std::vector<std::string> sources = found != given.end() ? found->second : std::vector{text(option)};
    for (const auto& source : sources) {
        if (source.empty() && found == given.end()) continue;
        for (const auto& part : split(source, ',')) {
            const std::size_t begin = part.find_first_not_of(' ');
            if (begin == std::string::npos)
                throw usage_error("{} \"{}\" has an empty entry: separate values with single commas", option, source);
            values.push_back(part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
        }
    }
    return values;
}

double Arguments::number(std::string_view option) const { return number_in(option, text(option)); }

std::vector<double> Arguments::numbers(std::string_view option) const {
    std::vector<double> values;
    for (const auto& part : list(option)) values.push_back(number_in(option, part));
    return values;
}

std::size_t Arguments::count(std::string_view option) const { return count_in(option, text(option)); }

std::vector<std::size_t> Arguments::counts(std::string_view option) const {
    std::vector<std::size_t> values;
    for (const auto& part : list(option)) values.push_back(count_in(option, part));
    return values;
}

}  // namespace spiked::app
