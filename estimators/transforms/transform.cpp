#include "estimators/transforms/transform.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "estimators/transforms/dyson_equalizer.hpp"
#include "estimators/transforms/whitening.hpp"

namespace spiked::estimators {

namespace {

using Enter = std::function<WhiteCoordinates(AnalysedBlock& block)>;

struct Row {
    EstimatorEntry entry;
    Enter (*make)(const NameOptions& named, const KnownNoise& known);
};

Enter make_whiten(const NameOptions& named, const KnownNoise& known) {
    if (named.words().size() > 1)
        throw usage_error("\"{}\": diagonal and full exclude each other: leave one out", named.text());
    if (!known.empty() && !named.words().empty())
        throw usage_error("\"{}\": covariances are known, none is estimated: leave :{} out", named.text(),
                          named.words().front());
    if (!known.empty()) return [known](AnalysedBlock& block) { return whiten_known(block, known); };
    return [full = named.has_word("full")](AnalysedBlock& block) { return whiten_estimated(block, full); };
}

Enter make_dyson(const NameOptions&, const KnownNoise&) { return dyson_equalize; }

Enter reject_positions(const NameOptions& named, const KnownNoise&) {
    throw usage_error(
        "\"{}\": unrope needs a method that codes a dump (it needs token positions): write "
        "unrope+eoptshrink+tq-mse with spiked kv run or kv encode",
        named.text());
}

const Registry<Row>& rows() {
    static const Registry<Row> table(
        "transform",
        {
            {{{"whiten",
               "around an estimator, whiten+gd-shrink: shrinks where the noise is white, then colours again",
               {{"diagonal", {}, "row and column variances are estimated, the default"},
                {"full", {}, "whole covariances are estimated"},
                {"--row-spectrum", any_text("SPEC|FILE.npy"), "the covariance is known: law = \"known\" in a study"},
                {"--col-spectrum", any_text("SPEC|FILE.npy"), "the same of columns"}},
               "Leeb & Romanov 2021"},
              true},
             make_whiten},
            {{{"dyson",
               "around an estimator, dyson+gd-shrink: whitening by row and column variances from the resolvent of the "
               "block",
               {},
               "Landa & Kluger 2023"}},
             make_dyson},
            {{{"unrope",
               "in front of a method of kv run or kv encode, unrope+eoptshrink+tq-mse: keys as before their rotary "
               "embedding",
               {},
               "KVQuant codes such keys"}},
             reject_positions},
        });
    return table;
}

}  // namespace

const std::vector<EstimatorEntry>& transforms() {
    static const auto entries = rows().entries<EstimatorEntry>();
    return entries;
}

bool is_transform(std::string_view text) { return rows().find(parse_name(text).name) != nullptr; }

Transform transform(std::string_view text, const KnownNoise& known) {
    const ParsedName parsed = parse_name(text);
    const Row& row = rows().named(parsed.name);
    return {parsed.text, row.make(NameOptions(parsed, row.entry.options), known),
            row.entry.takes_noise_law && !known.empty()};
}

}  // namespace spiked::estimators
