#include "estimators/transform.hpp"

#include <algorithm>

#include "estimators/dyson_equalizer.hpp"
#include "estimators/name_options.hpp"
#include "estimators/whitening.hpp"
#include "theory/base/error.hpp"

namespace spiked::estimators {

const std::vector<EstimatorEntry>& transforms() {
    static const std::vector<EstimatorEntry> table = {
        {"whiten",
         "around an estimator, whiten+gd-shrink: shrinks where the noise is white, then colours again",
         {":diagonal|:full (what is estimated; default diagonal)",
          "--row-spectrum, --col-spectrum (law = \"known\" in a study) tell the covariances instead"},
         "Leeb & Romanov 2021",
         true},
        {"dyson",
         "around an estimator, dyson+gd-shrink: the same, row and column variances from the resolvent of the block",
         {},
         "Landa & Kluger 2023"},
        {"unrope",
         "in front of a method of kv run or kv encode, unrope+eoptshrink+tq-mse: keys as before their rotary embedding",
         {},
         "KVQuant codes such keys"},
    };
    return table;
}

bool is_transform(std::string_view text) {
    const std::string name = parse_name(text).name;
    return std::any_of(transforms().begin(), transforms().end(), [&](const auto& entry) { return entry.name == name; });
}

Transform transform(std::string_view text, const KnownNoise& known) {
    const ParsedName parsed = parse_name(text);
    if (parsed.name == "whiten") {
        const NameOptions typed(parsed, {}, {"diagonal", "full"});
        if (typed.words().size() > 1)
            throw usage_error("\"{}\": diagonal and full exclude each other: leave one out", parsed.text);
        if (!known.empty())
            return {parsed.text, [known](AnalysedBlock& block) { return whiten_known(block, known); }, true};
        const bool full = typed.has_word("full");
        return {parsed.text, [full](AnalysedBlock& block) { return whiten_estimated(block, full); }, false};
    }
    if (parsed.name == "unrope")
        throw usage_error(
            "\"{}\": unrope stands in front of a method that codes a dump (positions are needed): write "
            "unrope+eoptshrink+tq-mse with spiked kv run or kv encode",
            parsed.text);
    if (parsed.name == "dyson") {
        const NameOptions typed(parsed, {});
        return {parsed.text, dyson_equalize, false};
    }
    std::vector<std::string> names;
    for (const auto& entry : transforms()) names.push_back(entry.name);
    throw usage_error("unknown transform \"{}\"{}", parsed.name, suggestion(parsed.name, names));
}

}  // namespace spiked::estimators
