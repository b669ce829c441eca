#include "app/method_options.hpp"

#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::app {

const std::vector<Option>& quantizer_options() {
    static const std::vector<Option> options = {
        {"--rotation", "haar|rht1|rht2|fht-kac|identity", "rotation before the indices", "haar", false},
        {"--codebook", "sphere|normal", "law the levels are optimal for", "sphere", false},
        {"--norm", "fp16|bf16|fp32|fp64|log8", "format of norms, scales and singular values", "fp16", false},
        {"--group", "G", "entries that share a scale (kivi, rht-uniform, gear)", "64", false},
        {"--factor-bits", "N", "bits an entry of a stored singular vector, 1 to 8", "4", false},
        {"--factor-codebook", "normal|lloyd|fp16", "levels of stored singular vectors", "normal", false},
        {"--open-loop", "", "form the residual before the factors are coded (loses accuracy)", "", false},
        {"--seed", "HEX", "seed of the rotations", "0x5eed", false},
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

std::vector<double> read_bits(const Arguments& arguments) {
    std::vector<double> bits;
    for (const auto& part : arguments.list("--bits")) {
        const auto value = to_number(part);
        if (!value) throw usage_error("--bits: \"{}\" is not a number", part);
        if (!(*value > 0.0 && *value <= 8.0))
            throw usage_error("--bits {} is not possible: a quantizer takes 1 to 8", part);
        bits.push_back(*value);
    }
    return bits;
}

}  // namespace spiked::app
