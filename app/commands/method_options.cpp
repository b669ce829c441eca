#include "app/commands/method_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/eviction.hpp"

namespace spiked::app {

/// The options of quantizers that all these commands have; `quantize` also has --axis and --residual.
constexpr std::string_view common_quantizer_options[] = {"--rotation",    "--codebook",        "--norm",     "--group",
                                                         "--factor-bits", "--factor-codebook", "--open-loop"};

const std::vector<OptionSpec>& quantizer_options() {
    static const std::vector<OptionSpec> options = [] {
        std::vector<OptionSpec> all;
        for (const auto key : common_quantizer_options) all.push_back(estimators::quantizer_option(key));
        all.push_back({"--seed", any_text("HEX"), "seed of everything random, such as rotations", "0x5eed"});
        return all;
    }();
    return options;
}

OptionSpec residual_option() {
    return {"--residual", whole("R"),
            "full-precision tail of a sequence of T tokens (kivi): of values the last R, of keys the last T mod R",
            "128", false};
}

/// The value of an option: a truth value for a switch, a number or a text. Where the range of a number has two ends,
/// throws usage_error for numbers outside it.
static Json value_of(const Arguments& arguments, const OptionSpec& option) {
    const ValueSpec& value = option.value;
    if (value.kind == ValueSpec::Kind::none) return arguments.has(option.key);
    if (value.kind != ValueSpec::Kind::whole) return arguments.text(option.key);
    const Json number = arguments.count(option.key);
    const bool bounded = value.most < std::numeric_limits<std::int64_t>::max();
    if (bounded && (*number.integer() < value.least || *number.integer() > value.most))
        throw usage_error("{} {} is not possible: choose {} to {}", option.key, *number.integer(), value.least,
                          value.most);
    return number;
}

estimators::QuantizerOptions read_quantizer_options(const Arguments& arguments) {
    estimators::QuantizerOptions options;
    for (const auto key : common_quantizer_options)
        estimators::set_option(options, key, value_of(arguments, estimators::quantizer_option(key)));
    options.seed = stream::StudySeed::parse(arguments.text("--seed"));
    return options;
}

namespace {

bool concerns_factors(std::string_view option) { return option.starts_with("--factor") || option == "--open-loop"; }

/// Whether the quantizer has this command-line option, or takes the same setting in its name.
bool accepts_option(const RegistryEntry& entry, std::string_view option) {
    return std::any_of(entry.options.begin(), entry.options.end(),
                       [&](const OptionSpec& spec) { return spec.key == option || spec.also_option == option; });
}

/// Whether the option has an effect on a method. Caches pass theirs on to the quantizer of their latents.
bool has_effect(std::string_view option, const std::string& name) {
    if (estimators::is_cache_method(name)) return true;
    const auto method = estimators::parse_kept_and_coded(name).method;
    if (!method) return false;
    if (concerns_factors(option)) return method->spectral.has_value();
    return accepts_option(method->quantizer.entry(), option);
}

}  // namespace

void reject_unused_options(const Arguments& arguments, const std::vector<std::string>& methods) {
    for (const auto& spec : estimators::quantizer_option_specs()) {
        const std::string& option = spec.key;
        if (option == "--norm") continue;  // accepted everywhere, also where a method stores no numbers in that format
        // --residual 0 keeps no token, which holds for every method without the option.
        if (!arguments.has(option) || arguments.text(option) == "0" ||
            std::any_of(methods.begin(), methods.end(), [&](const auto& method) { return has_effect(option, method); }))
            continue;
        std::vector<std::string> of;
        for (const auto& entry : estimators::row_quantizers())
            if (accepts_option(entry, option)) of.push_back(entry.name);
        throw usage_error(
            "{} has no effect on {} (it applies to {}): leave it out", option, fmt::join(methods, ", "),
            concerns_factors(option) ? "methods ESTIMATOR+QUANTIZER" : fmt::format("{}", fmt::join(of, ", ")));
    }
}

std::string one_method(const Arguments& arguments) {
    const std::string name = arguments.text("--method");
    if (name.find(',') != std::string::npos)
        throw usage_error("--method \"{}\" names several (this command takes one): run it once per method", name);
    return name;
}

std::vector<double> read_bits(const Arguments& arguments) {
    std::vector<double> bits;
    for (const auto& part : arguments.list("--bits")) {
        const auto value = to_number(part);
        if (!value) throw usage_error("--bits: \"{}\" is not a number: write for example --bits 2,3", part);
        if (!(*value > 0.0 && *value <= 8.0))
            throw usage_error("--bits {} is not possible: a quantizer takes 1 to 8", part);
        bits.push_back(*value);
    }
    return bits;
}

}  // namespace spiked::app
