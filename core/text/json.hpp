#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spiked {

/// A JSON document in memory, for the output of commands and the headers of files. Objects keep the order of their
/// members. Numbers are written so that they read back exactly; NaN and infinity are written as null.
class Json {
public:
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;

    Json() = default;
    Json(std::nullptr_t) {}
    Json(bool value) : value_(value) {}
    Json(double value) : value_(value) {}
    Json(int value) : value_(std::int64_t{value}) {}
    Json(std::int64_t value) : value_(value) {}
    Json(std::size_t value) : value_(static_cast<std::int64_t>(value)) {}
    Json(const char* value) : value_(std::string(value)) {}
    Json(std::string_view value) : value_(std::string(value)) {}
    Json(std::string value) : value_(std::move(value)) {}
    Json(Array value) : value_(std::move(value)) {}
    Json(const std::vector<double>& values) : value_(Array(values.begin(), values.end())) {}
    Json(const std::vector<std::string>& texts) : value_(Array(texts.begin(), texts.end())) {}

    [[nodiscard]] static Json object(Object members = {}) {
        Json json;
        json.value_ = std::move(members);
        return json;
    }
    [[nodiscard]] static Json array() { return Json(Array{}); }

    /// Sets or replaces a member; *this must be an object. The cost is linear in the number of members: where a file
    /// decides that number, build an Object instead.
    Json& set(std::string key, Json value);
    /// Appends; *this must be an array.
    Json& push(Json value);

    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
    /// Each returns a null pointer when the value has another type.
    [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&value_); }
    [[nodiscard]] const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value_); }
    [[nodiscard]] const double* real() const { return std::get_if<double>(&value_); }
    [[nodiscard]] const std::string* string() const { return std::get_if<std::string>(&value_); }
    [[nodiscard]] const Array* items() const { return std::get_if<Array>(&value_); }
    [[nodiscard]] const Object* members() const { return std::get_if<Object>(&value_); }
    /// The member with this name; a null pointer when there is none or *this is not an object.
    [[nodiscard]] const Json* find(std::string_view key) const;

    /// The document as text, on one line if indent < 0. Strings are UTF-8 (with U+FFFD for invalid bytes); control
    /// characters are escaped.
    [[nodiscard]] std::string text(int indent = -1) const;

    /// Parses one document. Duplicate keys, nesting deeper than max_depth, integers that do not fit std::int64_t, and
    /// trailing text are rejected. Throws input_error with `where` in front of the message.
    [[nodiscard]] static Json parse(std::string_view text, const std::string& where, int max_depth = 16);

private:
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value_ = nullptr;
};

/// A string member of an object, or the fallback.
[[nodiscard]] std::string text_of(const Json& object, std::string_view key, const std::string& fallback = "");

/// A number of bits in JSON: an integer if it is whole, else a real number.
[[nodiscard]] Json bits_json(double bits);

}  // namespace spiked
