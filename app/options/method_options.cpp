#include "app/options/method_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"

namespace spiked::app {

/// The options of quantizers that all these commands have; `quantize` also has --axis and --residual.
constexpr std::string_view common_quantizer_options[] = {"--rotation",    "--codebook",        "--norm",     "--group",
                                                         "--factor-bits", "--factor-codebook", "--open-loop"};

const std::vector<OptionSpec>& quantizer_options() {
    static const std::vector<OptionSpec> options = [] {
        std::vector<OptionSpec> all;
        for (const auto key : common_quantizer_options) all.push_back(command_option(key));
        all.push_back({"--seed", any_text("HEX"), "seed of everything random, such as rotations", "0x5eed"});
        return in_group("Details of quantizers", std::move(all));
    }();
    return options;
}

OptionSpec command_option(std::string_view key) {
    OptionSpec option = estimators::quantizer_option(key);
    std::vector<std::string> in_their_names;
    for (const auto& entry : estimators::row_quantizers())
        for (const auto& own : entry.options)
            if (own.also_option == key) in_their_names.push_back(entry.name);
    if (!in_their_names.empty()) option.help += fmt::format(" ({})", fmt::join(in_their_names, ", "));
    return option;
}

OptionSpec bits_option(std::string fallback, const std::vector<std::string>& caches) {
    std::vector<std::string> with_fractions;
    for (const auto& entry : estimators::row_quantizers())
        if (entry.fractions) with_fractions.push_back(entry.name);
    for (const auto& entry : estimators::cache_methods())
        if (entry.fractions && std::ranges::find(caches, entry.name) != caches.end())
            with_fractions.push_back(entry.name);
    return {"--bits", number("B", {.above = 0.0, .most = 8.0}),
            fmt::format("bits of the index of an entry, norms and scales not counted; fractions with {}",
                        fmt::join(with_fractions, ", ")),
            std::move(fallback)};
}

OptionSpec several_bits_option(std::string fallback) {
    OptionSpec option = bits_option(std::move(fallback), estimators::and_caches());
    option.value = several(std::move(option.value));
    option.repeatable = true;
    return option;
}

OptionSpec residual_option() {
    OptionSpec option = estimators::quantizer_option("--residual");
    option.help = fmt::format(
        "number R of last tokens of a sequence that stay in fp16 ({}); of the keys of T tokens only the last T mod R",
        fmt::join(estimators::quantizers_with(option.key), ", "));
    option.fallback = "128";
    return option;
}

/// The value of an option: a truth value for a switch, a number or a text.
static Json value_of(const Arguments& arguments, const OptionSpec& option) {
    if (option.value.kind == ValueSpec::Kind::none) return arguments.has(option.key);
    if (option.value.kind == ValueSpec::Kind::whole) return arguments.count(option.key);
    return arguments.text(option.key);
}

estimators::QuantizerOptions read_quantizer_options(const Arguments& arguments) {
    estimators::QuantizerOptions options;
    for (const auto key : common_quantizer_options)
        estimators::set_option(options, key, value_of(arguments, estimators::quantizer_option(key)));
    options.seed = stream::StudySeed::parse(arguments.text("--seed"));
    return options;
}

UsedOptions used_by(const estimators::MethodSpec& method) {
    return {method.text, estimators::options_with_effect(method)};
}
UsedOptions used_by(const estimators::CacheMethod& method) { return {method.text, estimators::cache_options(method)}; }
UsedOptions used_by(const estimators::KeptAndCoded& how) {
    return {how.text, how.method  ? used_by(*how.method).options
                      : how.cache ? used_by(*how.cache).options
                                  : std::vector<OptionSpec>()};
}

void reject_unused_options(const Arguments& arguments, const std::vector<UsedOptions>& methods) {
    for (const auto& spec : estimators::quantizer_option_specs()) {
        const std::string& option = spec.key;
        if (!arguments.has(option) || (!spec.neutral.empty() && arguments.text(option) == spec.neutral)) continue;
        if (std::any_of(methods.begin(), methods.end(),
                        [&](const UsedOptions& method) { return has_option(method.options, option); }))
            continue;
        std::vector<std::string> names;
        for (const auto& method : methods) names.push_back(method.method);
        throw usage_error("{} has no effect on {} (it applies to {}): leave it out", option, fmt::join(names, ", "),
                          fmt::join(estimators::methods_with(option), ", "));
    }
}

void reject_unused_seed(const Arguments& arguments, const std::string& method, bool draws) {
    if (arguments.has("--seed") && !draws)
        throw usage_error("--seed has no effect on {} (it draws no random numbers): leave it out", method);
}

std::string one_method(const Arguments& arguments) {
    const std::string name = arguments.text("--method");
    if (name.find(',') != std::string::npos)
        throw usage_error("--method \"{}\" names several (this command takes one): run it once per method", name);
    return name;
}

}  // namespace spiked::app
