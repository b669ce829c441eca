#include "app/options/method_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

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

/// The options that have an effect on a method.
static std::vector<OptionSpec> options_of(const std::string& name) {
    if (estimators::is_cache_method(name)) return estimators::cache_options(estimators::cache_method(name));
    const auto method = estimators::parse_kept_and_coded(name).method;
    return method ? estimators::options_with_effect(*method) : std::vector<OptionSpec>();
}

/// Throws usage_error for a given option that is none of `used()`, the options that have an effect on the methods. It
/// is called only where options of quantizers are given: without them, methods are parsed later.
template <class Used>
static void reject_others(const Arguments& arguments, const std::string& methods, const Used& used) {
    std::optional<std::vector<OptionSpec>> known;
    for (const auto& spec : estimators::quantizer_option_specs()) {
        const std::string& option = spec.key;
        if (!arguments.has(option) || (!spec.neutral.empty() && arguments.text(option) == spec.neutral)) continue;
        if (!known) known = used();
        if (!has_option(*known, option))
            throw usage_error("{} has no effect on {} (it applies to {}): leave it out", option, methods,
                              fmt::join(estimators::methods_with(option), ", "));
    }
}

void reject_unused_options(const Arguments& arguments, const estimators::MethodSpec& method) {
    reject_others(arguments, method.text, [&] { return estimators::options_with_effect(method); });
}

void reject_unused_options(const Arguments& arguments, const std::vector<std::string>& methods) {
    reject_others(arguments, fmt::format("{}", fmt::join(methods, ", ")), [&] {
        std::vector<OptionSpec> all;
        for (const auto& method : methods)
            for (auto& own : options_of(method)) all.push_back(std::move(own));
        return all;
    });
}

void reject_unused_seed(const Arguments& arguments, const std::string& method) {
    const bool cache = estimators::is_cache_method(method);
    if (cache && arguments.has("--seed") && !estimators::cache_method(method).latents)
        throw usage_error("--seed has no effect on {} (it draws no random numbers): leave it out", method);
}

std::string one_method(const Arguments& arguments) {
    const std::string name = arguments.text("--method");
    if (name.find(',') != std::string::npos)
        throw usage_error("--method \"{}\" names several (this command takes one): run it once per method", name);
    return name;
}

}  // namespace spiked::app
