#include "estimators/row_quantizer.hpp"

#include "estimators/turboquant.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

struct Maker {
    QuantizerEntry entry;
    RowQuantizer (*make)(std::size_t, unsigned, const QuantizerOptions&);
};

const std::vector<Maker>& makers() {
    static const std::vector<Maker> table = {
        {{"tq-mse", "TurboQuant MSE: row norm, rotation, Lloyd-Max index of every coordinate", "index bits",
          "Zandieh et al. 2025, Algorithm 1"},
         turboquant_mse},
    };
    return table;
}

template <class Kind>
Kind kind_of(std::string_view what, std::string_view name, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (name == names[i]) return static_cast<Kind>(i);
    throw usage_error("unknown {} \"{}\"{}", what, name, suggestion(name, names));
}

}  // namespace

RotationKind rotation_kind(std::string_view name) {
    return kind_of<RotationKind>("rotation", name, {"haar", "identity"});
}
CodebookKind codebook_kind(std::string_view name) {
    return kind_of<CodebookKind>("codebook", name, {"sphere", "normal"});
}

const std::vector<QuantizerEntry>& row_quantizers() {
    static const std::vector<QuantizerEntry> entries = [] {
        std::vector<QuantizerEntry> all;
        for (const auto& maker : makers()) all.push_back(maker.entry);
        return all;
    }();
    return entries;
}

RowQuantizer row_quantizer(std::string_view name, std::size_t dimension, unsigned bits,
                           const QuantizerOptions& options) {
    if (bits < 1 || bits > 8)
        throw usage_error("{} bits are not possible (a quantizer takes 1 to 8): choose --bits 1 to 8", bits);
    const ParsedName parsed = parse_name(name);
    std::vector<std::string> names;
    for (const auto& maker : makers()) {
        names.push_back(maker.entry.name);
        if (maker.entry.name != parsed.name) continue;
        if (!parsed.values.empty() || !parsed.options.empty())
            throw usage_error("\"{}\": {} takes no options after a colon; use --rotation, --codebook, --norm",
                              parsed.text, parsed.name);
        return maker.make(dimension, bits, options);
    }
    throw usage_error("unknown quantizer \"{}\"{}", parsed.name, suggestion(parsed.name, names));
}

}  // namespace spiked::estimators
