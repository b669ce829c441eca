#include "estimators/quantizers/common_specs.hpp"

#include <fmt/format.h>

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
    return {"projection", one_of<ProjectionKind>(), "law of the rows of the random projection",
            std::string(enum_name(SketchOptions{}.projection))};
}

OptionSpec scale_spec(const std::vector<RowScale>& choices) {
    std::vector<std::string> names;
    for (const RowScale scale : choices) names.emplace_back(enum_name(scale));
    std::string fallback = names.front();
    return {"scale", one_of(std::move(names)),
            "scale of a decoded row: mmse has the least squared error, unbiased gives <x, x^> = |x|^2",
            std::move(fallback)};
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

NamedMatrices rotation_matrix(const RotationOptions& rotation, std::size_t dimension) {
    if (rotation.kind == RotationKind::identity) return {};
    return {{fmt::format("{}:{}{}", name_of(rotation.kind), dimension, index_suffix(rotation.index)),
             row_rotation(rotation, dimension).rotate(arma::mat(dimension, dimension, arma::fill::eye)).t()}};
}

std::string index_suffix(std::uint64_t index) { return index == 0 ? "" : fmt::format(":{}", index); }

std::string codebook_text(CodebookKind codebook, std::size_t dimension) {
    return fmt::format("{}:{}", name_of(codebook), dimension);
}

}  // namespace spiked::estimators
