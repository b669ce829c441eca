#include "estimators/quantizers/quantizer_options.hpp"

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

const std::vector<OptionSpec>& quantizer_option_specs() {
    static const std::vector<OptionSpec> specs = {
        {"--rotation", one_of<RotationKind>(), "rotation before the indices", "haar"},
        {"--codebook", one_of<CodebookKind>(), "law the levels are optimal for", "sphere"},
        {"--norm", one_of<NumberFormat>(), "format of norms, scales and singular values", "fp16"},
        {"--group", whole("G"), "entries that share a scale (kivi, kivi-hf, rht-uniform, gear)", "64"},
        {"--axis", one_of<GroupAxis>(), "groups along tokens or along channels (kivi, kvquant, gear)", "value"},
        {"--residual", whole("R"), "last tokens kept in fp16 (kivi)", "0"},
        {"--factor-bits", whole("N"), "bits an entry of a stored singular vector, 1 to 8", "4"},
        {"--factor-codebook", one_of<FactorCodebook>(), "levels of stored singular vectors", "normal"},
        {"--open-loop", {}, "form the residual before the factors are coded (loses accuracy)"},
    };
    return specs;
}

const OptionSpec& quantizer_option(std::string_view key) {
    for (const auto& spec : quantizer_option_specs())
        if (spec.key == key) return spec;
    throw precondition_error("{} is not an option of quantizers", key);
}

FactorOptions factor_options(const QuantizerOptions& options) {
    return {options.factor_codebook, options.factor_bits, options.norm, options.underflow};
}

Json quantizer_json(const QuantizerOptions& options) {
    return Json::object({{"rotation", name_of(options.rotation)},
                         {"codebook", name_of(options.codebook)},
                         {"norm", name_of(options.norm)},
                         {"factor_bits", static_cast<int>(options.factor_bits)},
                         {"factor_codebook", name_of(options.factor_codebook)},
                         {"open_loop", options.open_loop},
                         {"group", options.group},
                         {"residual", options.residual}});
}

}  // namespace spiked::estimators
