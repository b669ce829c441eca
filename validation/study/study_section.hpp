#pragma once
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/enum_names.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "validation/store/experiment.hpp"

// Helpers for reading a study file, shared by the other files of this folder.
namespace spiked::validation {

/// An error of a study without its place.
struct Problem {
    enum class Kind { unknown_key, other };
    std::string text;
    Kind kind = Kind::other;
};

/// Collects errors with their places in the file.
class Diagnostics {
public:
    /// Messages that have no place in the file print `unplaced` behind the file name instead.
    Diagnostics(std::string file, std::string unplaced) : file_(std::move(file)), unplaced_(std::move(unplaced)) {}

    void add(const toml::node& at, const std::string& problem) { add(at.source(), problem); }
    void add(const toml::source_region& at, const std::string& problem, Problem::Kind kind = Problem::Kind::other) {
        // A key or text of the file may contain line breaks, but an error is one line.
        found_.push_back(
            {at.begin ? at.begin : nowhere,
             one_line(at.begin ? fmt::format("{}:{}:{}: {}", file_, at.begin.line, at.begin.column, problem)
                               : fmt::format("{}{}: {}", file_, unplaced_, problem))});
        problems_.push_back({problem, kind});
    }
    /// Throws the errors in the order of the file.
    void throw_if_any() {
        if (found_.empty()) return;
        std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::string text;
        for (std::size_t i = 0; i < std::min<std::size_t>(20, found_.size()); ++i)
            text += (i == 0 ? "" : "\n") + found_[i].second;
        if (found_.size() > 20) text += fmt::format("\n... and {} more", found_.size() - 20);
        throw Errors(ErrorKind::usage, text);
    }
    [[nodiscard]] std::size_t count() const { return found_.size(); }
    /// The problems without their places, in the order in which they were found.
    [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

private:
    static constexpr toml::source_position nowhere = {std::numeric_limits<toml::source_index>::max(), 0};

    std::string file_;
    std::string unplaced_;
    std::vector<Problem> problems_;
    std::vector<std::pair<toml::source_position, std::string>> found_;
};

inline const toml::table empty_table;

/// Reads a table and records which keys were read, so that all other keys can be reported as errors.
class Section {
public:
    Section(const toml::table& table, std::string name, Diagnostics& diagnostics)
        : table_(table), name_(std::move(name)), diagnostics_(diagnostics) {}

    const toml::node* node(const std::string& key) {
        if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
        return table_.get(key);
    }
    /// `example` shows in the message how the table is written.
    const toml::table* table(const std::string& key, const char* example = nullptr) {
        const toml::node* found = node(key);
        if (found == nullptr) return nullptr;
        if (!found->is_table())
            diagnostics_.add(
                *found,
                fmt::format("\"{}\" must be a table{}", key,
                            example == nullptr ? "" : fmt::format(": write for example {} = {}", key, example)));
        return found->as_table();
    }
    /// The table [key], or an empty table.
    Section below(const std::string& key) {
        const toml::table* found = table(key);
        return {found == nullptr ? empty_table : *found, fmt::format("[{}]", key), diagnostics_};
    }
    /// A table, or null when the key is absent or `false`.
    const toml::table* table_or_false(const std::string& key) {
        const toml::node* found = node(key);
        if (found == nullptr || found->value_exact<bool>() == false) return nullptr;
        if (!found->is_table()) diagnostics_.add(*found, fmt::format("\"{}\" must be a table or false", key));
        return found->as_table();
    }
    bool flag(const std::string& key, bool fallback) {
        const toml::node* found = node(key);
        if (found == nullptr) return fallback;
        if (const auto value = found->value_exact<bool>()) return *value;
        diagnostics_.add(*found, fmt::format("\"{}\" must be true or false", key));
        return fallback;
    }
    std::string text(const std::string& key, const std::string& fallback) {
        const toml::node* found = node(key);
        if (found == nullptr) return fallback;
        if (const auto value = found->value_exact<std::string>()) return *value;
        diagnostics_.add(
            *found, found->is_value()
                        ? fmt::format("\"{0}\" must be a text in quotes: write {0} = \"{1}\"", key, written(*found))
                        : fmt::format("\"{}\" must be a text in quotes", key));
        return fallback;
    }
    std::string choice(const std::string& key, const std::string& fallback, const std::vector<std::string>& legal,
                       const Aliases& aliases = {}) {
        const std::string value = text(key, fallback);
        if (std::find(legal.begin(), legal.end(), value) == legal.end())
            diagnostics_.add(*table_.get(key), fmt::format("\"{}\" of {} is not possible{}", value, key,
                                                           suggestion(value, legal, aliases)));
        return value;
    }
    /// One of two names; whether it is the second. The first is the default.
    bool second_of(const std::string& key, const std::string& first, const std::string& second) {
        return choice(key, first, {first, second}) == second;
    }
    /// One of the names of an enumeration.
    template <class E>
    E choice(const std::string& key, E fallback) {
        return find_enum<E>(choice(key, std::string(enum_name(fallback)), names_of<E>(), aliases_of<E>()))
            .value_or(fallback);
    }
    double number(const std::string& key, double fallback, double low, double high) {
        const toml::node* found = node(key);
        if (found == nullptr) return fallback;
        const auto value = found->value<double>();
        if (value && found->is_number() && *value >= low && *value <= high) return *value;
        diagnostics_.add(*found, fmt::format("\"{}\" must be a number from {} to {}", key, low, high));
        return fallback;
    }
    std::size_t count(const std::string& key, std::size_t fallback, std::size_t low, std::size_t high) {
        const toml::node* found = node(key);
        if (found == nullptr) return fallback;
        const auto value = found->value_exact<std::int64_t>();
        if (value && *value >= static_cast<std::int64_t>(low) && *value <= static_cast<std::int64_t>(high))
            return static_cast<std::size_t>(*value);
        diagnostics_.add(*found, fmt::format("\"{}\" must be a whole number from {} to {}", key, low, high));
        return fallback;
    }
    /// A number or a list of numbers.
    std::vector<double> numbers(const std::string& key) {
        const toml::node* found = node(key);
        std::vector<double> values;
        if (found == nullptr) return values;
        const auto add = [&](const toml::node& one) {
            if (one.is_number())
                values.push_back(*one.value<double>());
            else
                diagnostics_.add(one, fmt::format("\"{}\" must be a number or a list of numbers", key));
        };
        if (const toml::array* list = found->as_array())
            for (const auto& one : *list) add(one);
        else
            add(*found);
        return values;
    }
    void require(const std::string& key, const char* example) {
        if (table_.get(key) == nullptr)
            diagnostics_.add(table_, fmt::format("\"{}\" is missing in {}: add for example {}", key, name_, example));
    }
    void reject(const std::string& key, const char* why) {
        if (const toml::node* found = node(key))
            diagnostics_.add(*found, fmt::format("\"{}\" is not in this version ({})", key, why));
    }
    /// Reports all keys that were not read; call it last.
    void no_other_keys() {
        for (const auto& [key, value] : table_)
            if (std::find(known_.begin(), known_.end(), key.str()) == known_.end())
                diagnostics_.add(
                    key.source(),
                    fmt::format("unknown key \"{}\" in {}{}", key.str(), name_, suggestion(key.str(), known_)),
                    Problem::Kind::unknown_key);
    }
    [[nodiscard]] const toml::table& raw() const { return table_; }

private:
    static std::string written(const toml::node& value) {
        std::ostringstream text;
        value.visit([&](const auto& one) { text << one; });
        return text.str();
    }

    const toml::table& table_;
    std::string name_;
    Diagnostics& diagnostics_;
    std::vector<std::string> known_;
};

/// Calls `make` for each table of a list of tables. `example` shows in the message how the tables are written.
template <class Make>
void each_table(Section& root, const std::string& key, Diagnostics& diagnostics, const std::string& example,
                const Make& make) {
    const toml::node* found = root.node(key);
    if (found == nullptr) return;
    const toml::array* list = found->as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
        diagnostics.add(*found, fmt::format("\"{}\" must be a list of tables: write {}", key, example));
        return;
    }
    constexpr std::size_t most = 1000;  // each entry is compared with all entries before it
    if (list->size() > most) {
        diagnostics.add(*found, fmt::format("{} {} are too many (at most {} in one study): split the study",
                                            list->size(), example.substr(0, example.find(' ')), most));
        return;
    }
    for (const auto& one : *list) make(*one.as_table());
}

/// Runs a parser of names, or a reader of a file that the study names, and adds its error to `diagnostics` at the node.
/// Errors that no change of the study file would fix (out of memory, failed writes, a stop request) are rethrown.
template <class Work>
void guarded(const toml::node& at, Diagnostics& diagnostics, const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::input) throw;
        diagnostics.add(at, error.what());
    }
}

/// One comparison with a number, as in `{ ge = 1.2, lt = 3 }` of checks and skip rules.
struct NumberCondition {
    Relation relation;
    double number = 0.0;
};
[[nodiscard]] std::vector<NumberCondition> read_comparisons(const toml::table& table, Diagnostics& diagnostics);

[[nodiscard]] Json json_of(const toml::node& node);
/// A value as the text of a factor, without spaces where it is a table, so that it can be used on the command line.
[[nodiscard]] std::string node_text(const toml::node& node);
/// Sets a value at a dotted path of a table; returns false when a part of the path is not a table.
[[nodiscard]] bool put(toml::table& to, const std::string& path, const toml::node& value);

}  // namespace spiked::validation
