#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"

namespace spiked {

/// The name of an enumerator as users and files write it.
template <class E>
struct EnumName {
    E value;
    std::string_view name;
    std::string_view alias = {};  ///< its name in other programs: suggested, never accepted
};

/// Specialised next to each enumeration that has names:
///
///     template <>
///     struct EnumNames<GroupAxis> {
///         static constexpr EnumName<GroupAxis> table[] = {{GroupAxis::key, "key"}, {GroupAxis::value, "value"}};
///     };
///
/// The order of the table is the one in which names are shown; it need not be that of the enumeration.
template <class E>
struct EnumNames;

template <class E>
[[nodiscard]] std::string_view enum_name(E value) {
    for (const auto& row : EnumNames<E>::table)
        if (row.value == value) return row.name;
    throw precondition_error("an enumerator {} has no name", static_cast<int>(value));
}

template <class E>
[[nodiscard]] std::vector<std::string> names_of() {
    std::vector<std::string> names;
    for (const auto& row : EnumNames<E>::table) names.emplace_back(row.name);
    return names;
}

template <class E>
[[nodiscard]] Aliases aliases_of() {
    Aliases aliases;
    for (const auto& row : EnumNames<E>::table)
        if (!row.alias.empty()) aliases.emplace_back(row.alias, row.name);
    return aliases;
}

/// The enumerator with this name; nothing when there is none.
template <class E>
[[nodiscard]] std::optional<E> find_enum(std::string_view name) {
    for (const auto& row : EnumNames<E>::table)
        if (row.name == name) return row.value;
    return std::nullopt;
}

/// The enumerator with this name. Throws usage_error with the nearest name; `what` says in the message what kind of
/// name it is.
template <class E>
[[nodiscard]] E enum_named(std::string_view name, std::string_view what) {
    if (const auto value = find_enum<E>(name)) return *value;
    throw usage_error("unknown {} \"{}\"{}", what, name, suggestion(name, names_of<E>(), aliases_of<E>()));
}

}  // namespace spiked
