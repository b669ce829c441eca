#include "app/commands/method_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/eviction.hpp"

namespace spiked::app {

const std::vector<Option>& quantizer_options() {
    static const std::vector<Option> options = {
        {"--rotation", "haar|rht1|rht2|fht-kac|identity", "rotation before the indices", "haar", false},
        {"--codebook", "sphere|normal", "law the levels are optimal for", "sphere", false},
        {"--norm", "fp16|bf16|fp32|fp64|log8", "format of norms, scales and singular values", "fp16", false},
        {"--group", "G", "entries that share a scale (kivi, kivi-hf, rht-uniform, gear)", "64", false},
        {"--factor-bits", "N", "bits an entry of a stored singular vector, 1 to 8", "4", false},
        {"--factor-codebook", "normal|lloyd|fp16", "levels of stored singular vectors", "normal", false},
        {"--open-loop", "", "form the residual before the factors are coded (loses accuracy)", "", false},
        {"--seed", "HEX", "of what is drawn, as rotations", "0x5eed", false},
    };
    return options;
}

Option residual_option() {
    return {"--residual", "R",
            "full-precision tail of a sequence (kivi): values the last R tokens, keys the last T mod R", "128", false};
}

estimators::QuantizerOptions read_quantizer_options(const Arguments& arguments) {
    estimators::QuantizerOptions options;
    options.rotation = estimators::rotation_kind(arguments.text("--rotation"));
    options.codebook = estimators::codebook_kind(arguments.text("--codebook"));
    options.norm = estimators::number_format(arguments.text("--norm"));
    const std::size_t factor_bits = arguments.count("--factor-bits");
    if (factor_bits < 1 || factor_bits > 8)
        throw usage_error("--factor-bits {} is not possible: choose 1 to 8", factor_bits);
    options.factor_bits = static_cast<unsigned>(factor_bits);
    options.factor_codebook = estimators::factor_codebook(arguments.text("--factor-codebook"));
    options.open_loop = arguments.has("--open-loop");
    options.group = arguments.count("--group");
    options.seed = stream::StudySeed::parse(arguments.text("--seed"));
    return options;
}

namespace {

bool is_of_factors(std::string_view option) { return option.starts_with("--factor") || option == "--open-loop"; }

bool lists(const estimators::QuantizerEntry& entry, std::string_view option) {
    return std::any_of(entry.options.begin(), entry.options.end(),
                       [&](const std::string& text) { return text.find(option) != std::string::npos; });
}

/// Whether the option changes what a method does. Caches pass theirs on to the quantizer of their latents.
bool reaches(std::string_view option, const std::string& name) {
    if (estimators::is_cache_method(name)) return true;
    const auto method = estimators::parse_kept_and_coded(name).method;
    if (!method) return false;
    if (is_of_factors(option)) return method->spectral.has_value();
    return lists(estimators::row_quantizer_entry(method->quantizer), option);
}

}  // namespace

void reject_unused_options(const Arguments& arguments, const std::vector<std::string>& methods) {
    for (const char* option : {"--rotation", "--codebook", "--group", "--axis", "--residual", "--factor-bits",
                               "--factor-codebook", "--open-loop"}) {
        // --residual 0 keeps no token: so does every method without the option.
        if (!arguments.has(option) || arguments.text(option) == "0" ||
            std::any_of(methods.begin(), methods.end(), [&](const auto& method) { return reaches(option, method); }))
            continue;
        std::vector<std::string> of;
        for (const auto& entry : estimators::row_quantizers())
            if (lists(entry, option)) of.push_back(entry.name);
        throw usage_error(
            "{} changes nothing of {} (it is of {}): leave it out", option, fmt::join(methods, ", "),
            is_of_factors(option) ? "methods ESTIMATOR+QUANTIZER" : fmt::format("{}", fmt::join(of, ", ")));
    }
}

std::string one_method(const Arguments& arguments) {
    const std::string name = arguments.text("--method");
    if (name.find(',') != std::string::npos)
        throw usage_error("--method \"{}\" names several (this command codes by one): run it once a method", name);
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
