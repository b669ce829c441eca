#include "estimators/quantizers/quantizer_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/quantizers/common_specs.hpp"

namespace spiked::estimators {

// Each family is defined in the source file of its quantizer, without a header.
QuantizerFamily tq_mse_family();
QuantizerFamily tq_prod_family();
QuantizerFamily eden_family();
QuantizerFamily eden_mmse_family();
QuantizerFamily eden_norm_family();
QuantizerFamily qjl_family();
QuantizerFamily kivi_family();
QuantizerFamily kivi_hf_family();
QuantizerFamily rht_uniform_family();
QuantizerFamily rabitq_family();
QuantizerFamily tcq_family();
QuantizerFamily polarquant_family();
QuantizerFamily pq_family();
QuantizerFamily kvquant_family();
QuantizerFamily ecsq_family();
QuantizerFamily gear_family();
QuantizerFamily svdq_family();
QuantizerFamily mx_family();

static const Registry<QuantizerFamily>& quantizer_families() {
    static const Registry<QuantizerFamily> table(
        "quantizer",
        {tq_mse_family(), tq_prod_family(), eden_family(), eden_mmse_family(), eden_norm_family(), qjl_family(),
         kivi_family(), kivi_hf_family(), rht_uniform_family(), rabitq_family(), tcq_family(), polarquant_family(),
         pq_family(), kvquant_family(), ecsq_family(), gear_family(), svdq_family(), mx_family()});
    return table;
}

const std::vector<QuantizerEntry>& row_quantizers() {
    static const auto entries = quantizer_families().entries<QuantizerEntry>();
    return entries;
}

std::vector<std::string> quantizers_with(std::string_view option) {
    std::vector<std::string> names;
    for (const auto& entry : row_quantizers())
        if (has_option(entry.options, option)) names.push_back(entry.name);
    return names;
}

bool is_row_quantizer(std::string_view name) { return quantizer_families().find(parse_name(name).name) != nullptr; }

QuantizerSpec quantizer_spec(std::string_view text) {
    const ParsedName parsed = parse_name(text);
    const QuantizerFamily& family = quantizer_families().named(parsed.name);
    const auto& specs = family.entry.options;
    if (!parsed.values.empty()) {
        const std::string variant = parsed.name + "-" + parsed.values.front();
        std::string instead = suggested_option(parsed.values.front(), specs);
        if (quantizer_families().find(variant) != nullptr) instead = "; did you mean \"" + variant + "\"?";
        throw usage_error("\"{}\": {} takes no value after its name{}", parsed.text, parsed.name,
                          instead.empty() ? "; bits are given by --bits" : instead);
    }
    std::vector<std::string> of_commands;
    for (const OptionSpec& spec : specs)
        if (spec.key.starts_with('-')) of_commands.push_back(spec.key);
    if (!parsed.options.empty() && of_commands.size() == specs.size())
        throw usage_error("\"{}\": {} has no option \"{}\"; it takes none{}{}", parsed.text, parsed.name,
                          parsed.options.front().first, of_commands.empty() ? "" : ", see ",
                          fmt::join(of_commands, ", "));
    return {parsed.text, &family, NameOptions(parsed, specs)};
}

const QuantizerEntry& QuantizerSpec::entry() const { return family->entry; }

void QuantizerSpec::check_bits(double bits) const {
    const QuantizerEntry& own = entry();
    const double least = own.fractions ? 0.25 : 1.0;
    if (!(bits >= least && bits <= 8.0))
        throw usage_error("{} bits are not possible ({} takes {} to 8): choose --bits {} to 8", bits, own.name, least,
                          least);
    if (own.fractions) return;
    if (bits != std::floor(bits))
        throw usage_error(
            "{} bits are not possible with {} (an index has whole bits; ecsq takes fractions): choose --bits {} or {}",
            bits, own.name, std::floor(bits), std::ceil(bits));
    if (std::find(own.widths.begin(), own.widths.end(), bits) == own.widths.end())
        throw usage_error("{} bits are not possible with {} (it takes {}): choose one of these as --bits", bits,
                          own.name, fmt::join(own.widths, ", "));
}

/// A dense rotation of longer rows, d x d, would take a gigabyte and a minute, even for a file of a kilobyte.
static constexpr std::size_t longest_row = 4096;

RowQuantizer QuantizerSpec::make(std::size_t dimension, double bits, const QuantizerOptions& options) const {
    check_bits(bits);
    if (dimension > longest_row)
        throw input_error(
            "rows of {} entries (at most {} are coded, a dense rotation takes the square of it): cut them into shorter "
            "rows",
            dimension, longest_row);
    RowQuantizer quantizer = family->make(named, dimension, bits, options);
    quantizer.name = text;
    return quantizer;
}

std::size_t QuantizerSpec::kept_tail(const QuantizerOptions& options, std::size_t tokens) const {
    return family->tail == nullptr ? 0 : family->tail(named, options, tokens);
}

NamedMatrices QuantizerSpec::matrices(std::size_t dimension, double bits, const QuantizerOptions& options) const {
    NamedMatrices found;
    if (has_option(entry().options, "--rotation")) found = rotation_matrix(rotation_options(options), dimension);
    if (family->matrices != nullptr) found.merge(family->matrices(named, dimension, bits, options));
    return found;
}

RowQuantizer row_quantizer(std::string_view text, std::size_t dimension, double bits, const QuantizerOptions& options) {
    return quantizer_spec(text).make(dimension, bits, options);
}

}  // namespace spiked::estimators
