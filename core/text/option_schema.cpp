#include "core/text/option_schema.hpp"

template <>
struct spiked::EnumNames<spiked::ValueSpec::Kind> {
    static constexpr EnumName<spiked::ValueSpec::Kind> table[] = {{spiked::ValueSpec::Kind::none, "switch"},
                                                                  {spiked::ValueSpec::Kind::text, "text"},
                                                                  {spiked::ValueSpec::Kind::whole, "integer"},
                                                                  {spiked::ValueSpec::Kind::number, "number"},
                                                                  {spiked::ValueSpec::Kind::choice, "choice"}};
};

namespace spiked {
namespace {

const char* place_of(const OptionSpec& option) {
    if (option.key.empty()) return "value";
    if (option.key.starts_with('-')) return "command";
    return option.value.kind == ValueSpec::Kind::none ? "word" : "key";
}

void set_texts(Json& schema, const char* key, const std::vector<std::string>& texts) {
    if (!texts.empty()) schema.set(key, Json::Array(texts.begin(), texts.end()));
}

void set_limits(Json& schema, const ValueSpec& value) {
    if ((value.open ? value.others : value.kind) == ValueSpec::Kind::whole) {
        schema.set("minimum", value.least);
        if (value.most < std::numeric_limits<std::int64_t>::max()) schema.set("maximum", value.most);
    }
    const auto set = [&](const char* key, const std::optional<double>& limit) {
        if (limit) schema.set(key, *limit);
    };
    set("minimum", value.range.least);
    set("exclusive_minimum", value.range.above);
    set("maximum", value.range.most);
    set("exclusive_maximum", value.range.below);
}

}  // namespace

Json option_schema(const OptionSpec& option) {
    const ValueSpec& value = option.value;
    Json schema = Json::object({{"key", option.key},
                                {"where", place_of(option)},
                                {"type", enum_name(value.kind)},
                                {"default", option.fallback.empty() ? Json() : Json(option.fallback)},
                                {"help", option.help}});
    if (!value.shown.empty()) schema.set("value", value.shown);
    set_texts(schema, "choices", value.choices);
    if (value.open) schema.set("other_values", true).set("other_type", enum_name(value.others));
    set_limits(schema, value);
    if (value.list) schema.set("list", true);
    set_texts(schema, "names", value.topics);
    set_texts(schema, "suffixes", value.suffixes);
    if (option.repeatable) schema.set("repeatable", true);
    if (!option.also_option.empty()) schema.set("command_option", option.also_option);
    if (!option.group.empty()) schema.set("group", option.group);
    set_texts(schema, "needs", option.needs.keys);
    set_texts(schema, "excludes", option.excludes.keys);
    return schema;
}

Json option_schema(const std::vector<OptionSpec>& options) {
    Json schemas = Json::array();
    for (const auto& option : options) schemas.push(option_schema(option));
    return schemas;
}

}  // namespace spiked
