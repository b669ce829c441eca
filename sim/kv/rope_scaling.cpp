#include "sim/kv/rope_scaling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

/// Types whose keys cannot be de-rotated from one number per pair, and why.
struct UnsupportedScaling {
    std::string_view type;
    std::string_view why;
};
constexpr UnsupportedScaling unsupported_scalings[] = {
    {"dynamic", "its frequencies depend on the length of the sequence at each step, which a dump does not state"},
    {"longrope", "it has a factor for each pair, short or long by the length of the sequence"},
    {"su", "it has a factor for each pair, short or long by the length of the sequence"},
    {"mrope", "its positions have three coordinates"},
    {"proportional", "it rotates some dimensions only"},
};

/// The members of an object that describes a scaling.
class ScalingKeys {
public:
    ScalingKeys(const Json& object, const std::string& where) : object_(object), where_(where) {}

    /// The value of a key; null where it is absent or null.
    [[nodiscard]] const Json* find(std::string_view key) const {
        const Json* value = object_.find(key);
        return value == nullptr || value->is_null() ? nullptr : value;
    }
    [[nodiscard]] double positive(std::string_view key) const {
        const Json* value = find(key);
        const double number = value == nullptr              ? std::nan("")
                              : value->real() != nullptr    ? *value->real()
                              : value->integer() != nullptr ? static_cast<double>(*value->integer())
                                                            : std::nan("");
        if (!(number > 0.0) || !std::isfinite(number))
            reject(fmt::format("{} is {}, a positive number is expected", key,
                               value == nullptr ? "missing" : printable(value->text())));
        constexpr double least = 1e-9, most = 1e9;  // so that no angle and no row overflows
        if (number < least || number > most)
            reject(fmt::format("{} is {}, a number from {} to {} is expected", key, number, least, most));
        return number;
    }
    [[nodiscard]] double positive(std::string_view key, double otherwise) const {
        return find(key) == nullptr ? otherwise : positive(key);
    }
    [[nodiscard]] bool flag(std::string_view key, bool otherwise) const {
        const Json* value = find(key);
        if (value == nullptr) return otherwise;
        if (value->boolean() == nullptr)
            reject(fmt::format("{} is {}, not true or false", key, printable(value->text())));
        return *value->boolean();
    }
    [[noreturn]] void reject(const std::string& why) const {
        throw input_error("{} is {} ({}): take it from the model's original config.json", where_,
                          printable(object_.text()), why);
    }

private:
    const Json& object_;
    const std::string& where_;
};

/// The factor that makes up for flatter attention, of yarn: 0.1 weight log(factor) + 1.
double yarn_attention(double factor, double weight) {
    return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

RopeScaling read_scaling_of(RopeScalingKind kind, const ScalingKeys& keys) {
    RopeScaling scaling;
    scaling.kind = kind;
    scaling.factor = keys.positive("factor");
    if (kind == RopeScalingKind::linear) return scaling;
    const bool yarn = kind == RopeScalingKind::yarn;
    const std::string_view low = yarn ? "beta_slow" : "low_freq_factor";
    const std::string_view high = yarn ? "beta_fast" : "high_freq_factor";
    scaling.low_frequency = yarn ? keys.positive(low, 1.0) : keys.positive(low);
    scaling.high_frequency = yarn ? keys.positive(high, 32.0) : keys.positive(high);
    scaling.context = keys.positive("original_max_position_embeddings");
    if (!(scaling.high_frequency > scaling.low_frequency)) keys.reject(fmt::format("{} is not above {}", high, low));
    if (!yarn) return scaling;
    const bool weighted = keys.find("mscale") != nullptr && keys.find("mscale_all_dim") != nullptr;
    const double usual = weighted ? yarn_attention(scaling.factor, keys.positive("mscale")) /
                                        yarn_attention(scaling.factor, keys.positive("mscale_all_dim"))
                                  : yarn_attention(scaling.factor, 1.0);
    scaling.attention_factor = keys.positive("attention_factor", usual);
    scaling.whole_pairs = keys.flag("truncate", true);
    return scaling;
}

/// The pair, not always a whole one, that makes so many turns in the context.
double pair_of_turns(const RopeScaling& scaling, double base, double turns, std::size_t dim) {
    return static_cast<double>(dim) * std::log(scaling.context / (2.0 * std::numbers::pi * turns)) /
           (2.0 * std::log(base));
}

/// How much of the frequency without scaling a pair keeps, from 0 to 1.
double unscaled_weight(const RopeScaling& scaling, double base, double plain, std::size_t pair, std::size_t dim) {
    if (scaling.kind == RopeScalingKind::linear) return 0.0;
    if (scaling.kind == RopeScalingKind::llama3) {
        const double turns = scaling.context * plain / (2.0 * std::numbers::pi);
        return std::clamp((turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency), 0.0, 1.0);
    }
    double first = pair_of_turns(scaling, base, scaling.high_frequency, dim);
    double last = pair_of_turns(scaling, base, scaling.low_frequency, dim);
    if (scaling.whole_pairs) {
        first = std::floor(first);
        last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, static_cast<double>(dim) - 1.0);
    if (first == last) last += 1e-3;  // as in transformers: a step instead of a ramp
    return 1.0 - std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
}

}  // namespace

double scaled_frequency(const RopeScaling& scaling, double base, std::size_t pair, std::size_t dim) {
    const double plain = std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(dim));
    const double weight = unscaled_weight(scaling, base, plain, pair, dim);
    return plain * (weight + (1.0 - weight) / scaling.factor);
}

std::optional<RopeScaling> read_rope_scaling(const Json& object, const std::string& where) {
    if (object.is_null()) return std::nullopt;
    const ScalingKeys keys(object, where);
    if (object.members() == nullptr) keys.reject("an object with a rope_type is expected");
    if (keys.find("mrope_section") != nullptr)
        throw input_error("{} has an mrope_section (its positions have three coordinates): study the keys as they are",
                          where);
    for (const auto& [key, value] : *object.members())
        if (value.members() != nullptr)
            throw input_error(
                "{} has the object {} in it (layers of several kinds have an embedding each, and one is read): keep "
                "the layers of one kind, and write what their object holds",
                where, in_quotes(key));
    if (keys.positive("partial_rotary_factor", 1.0) != 1.0)
        keys.reject("a rotary embedding of some dimensions only is not supported");
    const Json* type = keys.find("rope_type") != nullptr ? keys.find("rope_type") : keys.find("type");
    if (type == nullptr) {
        // `rope_parameters` without scaling hold the base and nothing else.
        if (keys.find("factor") != nullptr) keys.reject("rope_type is missing");
        return std::nullopt;
    }
    if (type->string() == nullptr) keys.reject("rope_type is not a text");
    const std::string& name = *type->string();
    if (name == "default") return std::nullopt;
    if (const auto kind = find_enum<RopeScalingKind>(name)) return read_scaling_of(*kind, keys);
    const std::string known = fmt::format("default, {}", fmt::join(names_of<RopeScalingKind>(), ", "));
    for (const auto& other : unsupported_scalings)
        if (name == other.type)
            throw input_error("{} has rope_type \"{}\" ({}): only {} are supported", where, name, other.why, known);
    throw input_error("{} has the unknown rope_type {}: only {} are supported", where, in_quotes(name), known);
}

Json rope_scaling_json(const RopeScaling& scaling) {
    Json json = Json::object({{"rope_type", enum_name(scaling.kind)}, {"factor", scaling.factor}});
    if (scaling.kind == RopeScalingKind::linear) return json;
    const bool yarn = scaling.kind == RopeScalingKind::yarn;
    json.set(yarn ? "beta_slow" : "low_freq_factor", scaling.low_frequency);
    json.set(yarn ? "beta_fast" : "high_freq_factor", scaling.high_frequency);
    json.set("original_max_position_embeddings", scaling.context);
    if (yarn) {
        json.set("attention_factor", scaling.attention_factor);
        json.set("truncate", scaling.whole_pairs);
    }
    return json;
}

}  // namespace spiked::sim
