#include "core/text/json_fields.hpp"

#include <fmt/format.h>

#include <utility>

namespace spiked {

JsonFields::JsonFields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (json_.members() == nullptr) reject("is not an object");
}

void JsonFields::reject(const std::string& problem) const {
    throw input_error("{} {}: the file is damaged, forged or written by a newer program", where_, problem);
}

const Json& JsonFields::member(const std::string& key) const {
    const Json* found = json_.find(key);
    if (found == nullptr) reject(fmt::format("has no \"{}\"", key));
    return *found;
}

const std::string& JsonFields::text(const std::string& key) const {
    const auto* found = member(key).string();
    if (found == nullptr) reject(fmt::format("has a \"{}\" that is not a string", key));
    return *found;
}

std::size_t JsonFields::number(const std::string& key, std::int64_t least, std::int64_t most) const {
    const auto* found = member(key).integer();
    if (found == nullptr || *found < least || *found > most)
        reject(fmt::format("has a \"{}\" that is not a whole number from {} to {}", key, least, most));
    return static_cast<std::size_t>(*found);
}

double JsonFields::real(const std::string& key) const {
    const Json& found = member(key);
    if (found.integer() != nullptr) return static_cast<double>(*found.integer());
    if (found.real() == nullptr) reject(fmt::format("has a \"{}\" that is not a number", key));
    return *found.real();
}

bool JsonFields::boolean(const std::string& key) const {
    const auto* found = member(key).boolean();
    if (found == nullptr) reject(fmt::format("has a \"{}\" that is neither true nor false", key));
    return *found;
}

const Json::Array& JsonFields::items(const std::string& key) const {
    const auto* found = member(key).items();
    if (found == nullptr) reject(fmt::format("has a \"{}\" that is not a list", key));
    return *found;
}

}  // namespace spiked
