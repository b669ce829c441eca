#include "validation/study/study_section.hpp"

#include <fmt/ranges.h>

namespace spiked::validation {

bool put(toml::table& to, const std::string& path, const toml::node& value) {
    toml::table* at = &to;
    // Quotes protect the dots in a key of a sweep: sweep."signal.strength".
    std::vector<std::string> parts{""};
    bool quoted = false;
    for (const char c : path)
        if (c == '"')
            quoted = !quoted;
        else if (c == '.' && !quoted)
            parts.emplace_back();
        else
            parts.back() += c;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        if (at->get(parts[i]) == nullptr) at->insert(parts[i], toml::table{});
        at = at->get(parts[i])->as_table();
        if (at == nullptr) return false;
    }
    value.visit([&](const auto& concrete) { at->insert_or_assign(parts.back(), concrete); });
    return true;
}

std::vector<NumberCondition> read_comparisons(const toml::table& table, Diagnostics& diagnostics) {
    std::vector<NumberCondition> conditions;
    for (const auto& [comparison, number] : table) {
        const std::string name(comparison.str());
        const auto relation = find_enum<Relation>(name);
        if (!relation || !number.is_number())
            diagnostics.add(comparison.source(), fmt::format("\"{}\" is not a comparison with a number{}", name,
                                                             suggestion(name, names_of<Relation>())));
        else
            conditions.push_back({*relation, *number.value<double>()});
    }
    return conditions;
}

Json json_of(const toml::node& node) {
    if (const auto* table = node.as_table()) {
        Json::Object members;
        for (const auto& [key, value] : *table) members.emplace_back(key.str(), json_of(value));
        return Json::object(std::move(members));
    }
    if (const auto* list = node.as_array()) {
        Json array = Json::array();
        for (const auto& value : *list) array.push(json_of(value));
        return array;
    }
    if (const auto value = node.value_exact<std::string>()) return *value;
    if (const auto value = node.value_exact<bool>()) return *value;
    if (const auto value = node.value_exact<std::int64_t>()) return *value;
    if (const auto value = node.value<double>()) return *value;
    return {};
}

std::string node_text(const toml::node& node) {
    if (node.is_floating_point()) return fmt::format("{}", *node.value<double>());
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const toml::array* list = node.as_array()) {
        std::vector<std::string> parts;
        for (const auto& one : *list) parts.push_back(node_text(one));
        return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    // { kind = 'ar1', rho = 0.5 } becomes ar1:rho=0.5, a name without spaces that can be used on the command line.
    if (const toml::table* table = node.as_table()) {
        const auto kind = (*table)["kind"].value<std::string>();
        std::string text = kind ? *kind + ":" : "";
        for (const auto& [key, value] : *table)
            if (key.str() != "kind") text += fmt::format("{}={},", key.str(), node_text(value));
        if (text.ends_with(',') || text.ends_with(':')) text.pop_back();
        return text;
    }
    std::ostringstream text;
    node.visit([&](const auto& concrete) { text << concrete; });
    return text.str();
}

}  // namespace spiked::validation
