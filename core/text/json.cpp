#include "core/text/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/runtime/error.hpp"
#include "core/text/utf8.hpp"

namespace spiked {
namespace {

using Tree = nlohmann::ordered_json;

/// Builds a Json from the parser's events and rejects input that a tree builder would accept silently.
class Reader : public nlohmann::json_sax<Tree> {
public:
    Reader(std::string where, int max_depth) : where_(std::move(where)), max_depth_(max_depth) {}

    bool null() override { return add(Json()); }
    bool boolean(bool value) override { return add(Json(value)); }
    bool number_integer(std::int64_t value) override { return add(Json(value)); }
    bool number_unsigned(std::uint64_t value) override {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            reject_integer(std::to_string(value));
        return add(Json(static_cast<std::int64_t>(value)));
    }
    bool number_float(double value, const std::string& digits) override {
        // The parser converts an integer of more than 64 bits to a real number.
        if (digits.find_first_of(".eE") == std::string::npos) reject_integer(digits);
        return add(Json(value));
    }
    bool string(std::string& value) override { return add(Json(std::move(value))); }
    bool binary(Tree::binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(true); }
    bool start_array(std::size_t) override { return open(false); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(std::string& name) override {
        if (!open_.back().names.insert(name).second)
            throw input_error("{}: duplicate name {} (each name may occur once): the file is damaged or forged", where_,
                              Json(name.substr(0, 80)).text());
        open_.back().key = std::move(name);
        return true;
    }
    bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
        throw input_error("{}: not valid JSON at byte {} (syntax error): the file is damaged or of another format",
                          where_, at);
    }

    Json result;

private:
    [[noreturn]] void reject_integer(const std::string& digits) const {
        throw input_error("{}: number {} is too large (integers here have 63 bits): the file is damaged", where_,
                          digits.substr(0, 80));
    }

    /// A container being read. Its names are kept in an ordered set: a file may have a hundred thousand, and a hash
    /// table could be attacked with names that all collide.
    struct Level {
        bool is_object = false;
        Json::Array items;
        Json::Object members;
        std::set<std::string> names;
        std::string key;
    };

    bool open(bool is_object) {
        if (static_cast<int>(open_.size()) >= max_depth_)
            throw input_error("{}: JSON nested deeper than {} levels (no valid file is): the file is damaged or forged",
                              where_, max_depth_);
        open_.emplace_back().is_object = is_object;
        return true;
    }
    bool close() {
        Level done = std::move(open_.back());
        open_.pop_back();
        return add(done.is_object ? Json::object(std::move(done.members)) : Json(std::move(done.items)));
    }
    bool add(Json value) {
        if (open_.empty())
            result = std::move(value);
        else if (!open_.back().is_object)
            open_.back().items.push_back(std::move(value));
        else
            open_.back().members.emplace_back(std::move(open_.back().key), std::move(value));
        return true;
    }

    std::string where_;
    int max_depth_;
    std::vector<Level> open_;
};

Tree tree(const Json& json) {
    if (const auto* value = json.boolean()) return *value;
    if (const auto* value = json.integer()) return *value;
    if (const auto* value = json.real()) return std::isfinite(*value) ? Tree(*value) : Tree(nullptr);
    if (const auto* value = json.string()) return *value;
    if (const auto* items = json.items()) {
        Tree array = Tree::array();
        for (const auto& item : *items) array.push_back(tree(item));
        return array;
    }
    if (const auto* members = json.members()) {
        Tree object = Tree::object();
        // operator[] and emplace would compare with all earlier members; these names are already known to differ.
        auto& all = static_cast<Tree::object_t::Container&>(object.get_ref<Tree::object_t&>());
        all.reserve(members->size());
        for (const auto& [key, value] : *members) all.emplace_back(key, tree(value));
        return object;
    }
    return nullptr;
}

/// Escapes control characters as \\uXXXX, which a terminal would otherwise act on. In JSON written by the library they
/// occur only inside strings.
std::string with_controls_escaped(std::string document) {
    const auto shown = [](char c) { return static_cast<unsigned char>(c) < 0x7F; };
    if (std::all_of(document.begin(), document.end(), shown)) return document;
    std::string text;
    text.reserve(document.size() + 16);
    for (std::string_view rest = document; !rest.empty();) {
        const Character character = first_character(rest);
        const bool control = is_control(character.code) && character.code >= 0x7F;
        text += control ? fmt::format("\\u{:04x}", static_cast<unsigned>(character.code))
                        : std::string(rest.substr(0, character.bytes));
        rest.remove_prefix(character.bytes);
    }
    return text;
}

}  // namespace

Json& Json::set(std::string key, Json value) {
    auto& members = std::get<Object>(value_);
    for (auto& [name, old] : members)
        if (name == key) {
            old = std::move(value);
            return *this;
        }
    members.emplace_back(std::move(key), std::move(value));
    return *this;
}

Json& Json::push(Json value) {
    std::get<Array>(value_).push_back(std::move(value));
    return *this;
}

const Json* Json::find(std::string_view key) const {
    if (const auto* all = members())
        for (const auto& [name, value] : *all)
            if (name == key) return &value;
    return nullptr;
}

std::string Json::text(int indent) const {
    return with_controls_escaped(tree(*this).dump(indent, ' ', false, Tree::error_handler_t::replace));
}

Json Json::parse(std::string_view text, const std::string& where, int max_depth) {
    Reader reader(where, max_depth);
    if (!Tree::sax_parse(text.begin(), text.end(), &reader))
        throw input_error("{}: not valid JSON: the file is damaged or of another format", where);
    return std::move(reader.result);
}

std::string text_of(const Json& object, std::string_view key, const std::string& fallback) {
    const Json* value = object.find(key);
    return value != nullptr && value->string() != nullptr ? *value->string() : fallback;
}

Json bits_json(double bits) { return bits == std::floor(bits) ? Json(static_cast<std::int64_t>(bits)) : Json(bits); }

}  // namespace spiked
