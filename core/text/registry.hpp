#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/option_spec.hpp"

namespace spiked {

/// The description of an entry of a table from which users choose by name; `spiked list` prints it.
struct RegistryEntry {
    std::string name;
    std::string summary;
    std::vector<OptionSpec> options;
    std::string source;                     ///< a publication or a program
    std::vector<std::string> aliases = {};  ///< names in papers and other programs: suggested, never accepted
};

/// The members `entry` of all rows.
template <class Entry = RegistryEntry, class Rows>
[[nodiscard]] std::vector<Entry> entries_of(const Rows& rows) {
    std::vector<Entry> entries;
    for (const auto& row : rows) entries.push_back(row.entry);
    return entries;
}

/// A table from which users choose by name. A row has a member `entry`, a RegistryEntry or derived from it, and
/// whatever the program needs to use the chosen item:
///
///     struct Row { RegistryEntry entry; RankRule (*make)(const NameOptions&); };
///     static const Registry<Row> rules("rank rule", {{{"ed", "the last gap ...", {...}, "Onatski 2010"}, make_ed}});
///     rules.named("ed").make(options);
template <class Row>
class Registry {
public:
    Registry(std::string what, std::vector<Row> rows) : what_(std::move(what)), rows_(std::move(rows)) {}

    /// Null when there is no row with this name.
    [[nodiscard]] const Row* find(std::string_view name) const {
        const auto found = std::find_if(begin(), end(), [&](const Row& row) { return row.entry.name == name; });
        return found == end() ? nullptr : &*found;
    }
    /// Throws usage_error with the nearest name when there is no row with this name.
    [[nodiscard]] const Row& named(std::string_view name) const {
        if (const Row* row = find(name)) return *row;
        throw usage_error("unknown {} \"{}\"{}", what_, name, suggestion(name, names(), aliases()));
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const Row& row : rows_) all.push_back(row.entry.name);
        return all;
    }
    [[nodiscard]] Aliases aliases() const {
        Aliases all;
        for (const Row& row : rows_)
            for (const auto& alias : row.entry.aliases) all.emplace_back(alias, row.entry.name);
        return all;
    }
    template <class Entry = RegistryEntry>
    [[nodiscard]] std::vector<Entry> entries() const {
        return entries_of<Entry>(rows_);
    }
    [[nodiscard]] auto begin() const { return rows_.begin(); }
    [[nodiscard]] auto end() const { return rows_.end(); }

private:
    std::string what_;
    std::vector<Row> rows_;
};

/// The aliases of all entries of a list.
template <class Entries>
[[nodiscard]] Aliases aliases_in(const Entries& entries) {
    Aliases all;
    for (const auto& entry : entries)
        for (const auto& alias : entry.aliases) all.emplace_back(alias, entry.name);
    return all;
}

}  // namespace spiked
