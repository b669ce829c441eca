#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"

namespace spiked {

/// One line of `spiked list`: a name as users write it, what it is, what stands in its places, where it comes from.
/// What users choose by name stands in tables whose rows begin with one: `entry`.
struct CatalogueLine {
    std::string name;
    std::string summary;
    std::vector<std::string> options;
    std::string source;
};

/// The entries of a table.
template <class Entry = CatalogueLine, class Rows>
[[nodiscard]] std::vector<Entry> entries_of(const Rows& rows) {
    std::vector<Entry> entries;
    for (const auto& row : rows) entries.push_back(row.entry);
    return entries;
}

/// The row of a name; throws usage_error with the nearest, `what` being what the name was taken for.
template <class Rows>
[[nodiscard]] const auto& row_named(const Rows& rows, std::string_view name, std::string_view what) {
    std::vector<std::string> names;
    for (const auto& row : rows) {
        if (row.entry.name == name) return row;
        names.push_back(row.entry.name);
    }
    throw usage_error("unknown {} \"{}\"{}", what, name, suggestion(name, names));
}

}  // namespace spiked
