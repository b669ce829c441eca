#include "estimators/quantizers/quantizer_options.hpp"

#include "core/text/name_options.hpp"

namespace spiked::estimators {
namespace {

// In the order of their enumerations.
const std::vector<std::string> codebook_words = {"sphere", "normal"};
const std::vector<std::string> axis_words = {"key", "value"};

}  // namespace

CodebookKind codebook_kind(std::string_view name) {
    return static_cast<CodebookKind>(position_of(name, "codebook", codebook_words));
}
std::string_view name_of(CodebookKind kind) { return codebook_words[static_cast<std::size_t>(kind)]; }

const std::vector<std::string>& group_axes() { return axis_words; }
GroupAxis group_axis(std::string_view name) { return static_cast<GroupAxis>(position_of(name, "axis", axis_words)); }
std::string_view name_of(GroupAxis axis) { return axis_words[static_cast<std::size_t>(axis)]; }

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
