#include "estimators/quantizers/quantizer_options.hpp"

#include <type_traits>
#include <utility>

namespace spiked::estimators {
CodebookKind codebook_kind(std::string_view name) { return enum_named<CodebookKind>(name, "codebook"); }
std::string_view name_of(CodebookKind kind) { return enum_name(kind); }

GroupAxis group_axis(std::string_view name) { return enum_named<GroupAxis>(name, "axis"); }
std::string_view name_of(GroupAxis axis) { return enum_name(axis); }

RotationOptions rotation_options(const QuantizerOptions& options) {
    return {options.rotation, options.seed, options.rotation_index};
}
ScalarOptions scalar_options(const QuantizerOptions& options) { return {options.norm, options.underflow}; }
RowRotation row_rotation(const QuantizerOptions& options, std::size_t dimension) {
    return row_rotation(rotation_options(options), dimension);
}

namespace {

/// An option of QuantizerOptions: its spec, and its value as JSON.
struct SharedOption {
    OptionSpec spec;
    Json (*value)(const QuantizerOptions& options);
    void (*set)(QuantizerOptions& options, const Json& value);
};

template <class T>
const T& of_its_type(const T* value) {
    if (value == nullptr) throw precondition_error("an option of quantizers is set to a value of another type");
    return *value;
}

/// The entry of a member, whose initial value is the default; `named` finds an enumerator by its name.
template <auto member, auto named = nullptr>
SharedOption shared_option(OptionSpec spec) {
    using Value = std::remove_cvref_t<decltype(std::declval<QuantizerOptions&>().*member)>;
    const auto value = [](const QuantizerOptions& options) -> Json {
        if constexpr (std::is_enum_v<Value>)
            return enum_name(options.*member);
        else if constexpr (std::is_same_v<Value, bool>)
            return options.*member;
        else
            return std::size_t{options.*member};
    };
    const auto set = [](QuantizerOptions& options, const Json& given) {
        if constexpr (std::is_enum_v<Value>)
            options.*member = named(of_its_type(given.string()));
        else if constexpr (std::is_same_v<Value, bool>)
            options.*member = of_its_type(given.boolean());
        else
            options.*member = static_cast<Value>(of_its_type(given.integer()));
    };
    const Json initial = value({});
    if (initial.string() != nullptr) spec.fallback = *initial.string();
    if (initial.integer() != nullptr) spec.fallback = initial.text();
    return {std::move(spec), value, set};
}

const std::vector<SharedOption>& shared_options() {
    using Options = QuantizerOptions;
    static const std::vector<SharedOption> table = {
        shared_option<&Options::rotation, rotation_kind>(
            {"--rotation", one_of<RotationKind>(), "random rotation of each row before it is quantized"}),
        shared_option<&Options::codebook, codebook_kind>(
            {"--codebook", one_of<CodebookKind>(), "law of a coordinate for which the levels are optimal"}),
        shared_option<&Options::norm, number_format>(
            {"--norm", one_of<NumberFormat>(), "number format in which norms, scales and singular values are stored"}),
        shared_option<&Options::group>({"--group", whole("G", 1), "number of entries that share a scale"}),
        shared_option<&Options::axis, group_axis>(
            {"--axis", one_of<GroupAxis>(), "direction of a group: key along tokens, value along channels"}),
        shared_option<&Options::residual>({.key = "--residual",
                                           .value = whole("R"),
                                           .help = "number of last tokens that stay in fp16",
                                           .neutral = "0"}),
        shared_option<&Options::factor_bits>(
            {"--factor-bits", whole("N", 1, 8), "bits of each entry of a stored singular vector, 1 to 8"}),
        shared_option<&Options::factor_codebook, factor_codebook>(
            {"--factor-codebook", one_of<FactorCodebook>(),
             "levels for the entries of stored singular vectors; lloyd fits them to the block"}),
        shared_option<&Options::open_loop>(
            {"--open-loop",
             {},
             "take the residual of the exact factors, not of the decoded ones, which is less accurate"}),
    };
    return table;
}

const SharedOption& shared_option_named(std::string_view key) {
    for (const auto& option : shared_options())
        if (option.spec.key == key) return option;
    throw precondition_error("{} is not an option of quantizers", key);
}

}  // namespace

const std::vector<OptionSpec>& quantizer_option_specs() {
    static const std::vector<OptionSpec> specs = [] {
        std::vector<OptionSpec> all;
        for (const auto& option : shared_options()) all.push_back(option.spec);
        return all;
    }();
    return specs;
}

const OptionSpec& quantizer_option(std::string_view key) { return shared_option_named(key).spec; }

void set_option(QuantizerOptions& options, std::string_view key, const Json& value) {
    shared_option_named(key).set(options, value);
}

FactorOptions factor_options(const QuantizerOptions& options) {
    return {options.factor_codebook, options.factor_bits, options.norm, options.underflow};
}

Json quantizer_json(const QuantizerOptions& options, std::span<const std::string_view> list) {
    Json json = Json::object();
    for (const auto key : list) {
        const SharedOption& option = shared_option_named(key);
        json.set(json_key(option.spec), option.value(options));
    }
    return json;
}

QuantizerOptions parse_quantizer_json(const JsonFields& fields, std::span<const std::string_view> list) {
    QuantizerOptions options;
    for (const auto name : list) {
        const SharedOption& option = shared_option_named(name);
        const ValueSpec& value = option.spec.value;
        const std::string key = json_key(option.spec);
        if (value.kind == ValueSpec::Kind::none)
            option.set(options, fields.boolean(key));
        else if (value.kind == ValueSpec::Kind::whole)
            option.set(options, fields.number(key, value.least, value.most));
        else
            fields.parsed([&] { option.set(options, fields.text(key)); });
    }
    return options;
}

}  // namespace spiked::estimators
