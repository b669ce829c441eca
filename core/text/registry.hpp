#pragma once
#include <algorithm>
#include <cstddef>
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
    std::vector<OptionSpec> options = {};
    std::string source = {};                ///< a publication or a program
    std::vector<std::string> aliases = {};  ///< names in papers and other programs: suggested, never accepted
};

/// The aliases of all entries of a list.
template <class Entries>
[[nodiscard]] Aliases aliases_in(const Entries& entries) {
    Aliases all;
    for (const auto& entry : entries)
        for (const auto& alias : entry.aliases) all.emplace_back(alias, entry.name);
    return all;
}

/// The name with the values that must follow it, as users write it: `student:NU`.
[[nodiscard]] inline std::string written_form(const RegistryEntry& entry) {
    std::string form = entry.name;
    for (const auto& option : entry.options)
        if (option.key.empty()) form += ":" + option.value.shown;
    return form;
}

/// The entry of a row: its member `entry`, or the row itself, which then has at least a `name`. Rows that keep their
/// description in another form overload it.
template <class Row>
[[nodiscard]] const auto& entry_of(const Row& row) {
    if constexpr (requires { row.entry; })
        return row.entry;
    else
        return row;
}

/// A table from which users choose by name. A row has an entry (`entry_of`), and whatever the program needs to use the
/// chosen item:
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
        const auto found = std::find_if(begin(), end(), [&](const Row& row) { return entry_of(row).name == name; });
        return found == end() ? nullptr : &*found;
    }
    /// Throws usage_error with the nearest name when there is no row with this name.
    [[nodiscard]] const Row& named(std::string_view name) const { return named(name, what_); }
    /// The same; `what` says in the message what kind of name it is, where that depends on its place.
    [[nodiscard]] const Row& named(std::string_view name, std::string_view what) const {
        if (const Row* row = find(name)) return *row;
        throw usage_error("unknown {} \"{}\"{}", what, name, suggestion(name, names(), aliases()));
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const Row& row : rows_) all.push_back(entry_of(row).name);
        return all;
    }
    /// None where entries have none.
    [[nodiscard]] Aliases aliases() const {
        if constexpr (requires(const Row& row) { entry_of(row).aliases; })
            return aliases_in(entries());
        else
            return {};
    }
    template <class Entry = RegistryEntry>
    [[nodiscard]] std::vector<Entry> entries() const {
        std::vector<Entry> all;
        for (const Row& row : rows_) all.push_back(entry_of(row));
        return all;
    }
    [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
    [[nodiscard]] std::size_t size() const { return rows_.size(); }
    [[nodiscard]] const Row& operator[](std::size_t position) const { return rows_[position]; }
    [[nodiscard]] auto begin() const { return rows_.begin(); }
    [[nodiscard]] auto end() const { return rows_.end(); }

private:
    std::string what_;
    std::vector<Row> rows_;
};

}  // namespace spiked
