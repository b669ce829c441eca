#include "estimators/quantizers/quantizer_family.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/quantizers/sign_sketch.hpp"

namespace spiked::estimators {
namespace {

/// The option of commands as part of a name, `group=G`.
OptionSpec in_the_name(std::string_view key) {
    OptionSpec spec = quantizer_option(key);
    spec.also_option = spec.key;
    spec.key = spec.key.substr(2);
    return spec;
}

}  // namespace

OptionSpec rotation_spec() { return quantizer_option("--rotation"); }
OptionSpec codebook_spec() { return quantizer_option("--codebook"); }
OptionSpec norm_spec() { return quantizer_option("--norm"); }

OptionSpec signed_norm_spec() {
    OptionSpec spec = norm_spec();
    std::vector<std::string> formats = spec.value.choices;
    std::erase(formats, name_of(NumberFormat::log8));
    spec.value = one_of(std::move(formats), spec.value.aliases);
    return spec;
}

OptionSpec group_spec() { return in_the_name("--group"); }

OptionSpec axis_spec() {
    OptionSpec spec = in_the_name("--axis");
    spec.fallback.clear();  // blocks of a dump have a known axis
    return spec;
}

OptionSpec residual_spec() {
    OptionSpec spec = in_the_name("--residual");
    spec.fallback.clear();
    return spec;
}

OptionSpec projection_spec() {
    return {"projection", one_of<ProjectionKind>(), "rows of the sketch",
            std::string(enum_name(SketchOptions{}.projection))};
}

OptionSpec scale_spec(std::vector<std::string> choices) {
    std::string fallback = choices.front();
    return {"scale", one_of(std::move(choices)),
            "of a row: mmse has the least squared error, unbiased makes <x, x^> exact", std::move(fallback)};
}

std::size_t group_of(const NameOptions& named, const QuantizerOptions& options) {
    return named.whole("group").value_or(options.group);
}

GroupAxis axis_of(const NameOptions& named, const QuantizerOptions& options) {
    return named.choice<GroupAxis>("axis").value_or(options.axis);
}

void require_signs(const NameOptions& named, const QuantizerOptions& options) {
    if (options.norm == NumberFormat::log8)
        throw usage_error("log8 has no sign (\"{}\" stores signed numbers): give --norm fp16", named.text());
}

}  // namespace spiked::estimators
