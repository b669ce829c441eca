#include "estimators/transforms/transform.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "estimators/transforms/dyson_equalizer.hpp"
#include "estimators/transforms/whitening.hpp"

namespace spiked::estimators {

/// An entry of the table of transforms.
struct TransformFamily {
    using Enter = decltype(Transform::enter);
    EstimatorEntry entry;
    Enter (*make)(const NameOptions& named, const KnownNoise& known);
};

namespace {

using Enter = TransformFamily::Enter;

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

Enter reject_means(const NameOptions& named, const KnownNoise&) {
    throw usage_error("\"{}\": means are stored by a method, not by an estimator: write mean+svd:rd+tcq", named.text());
}

const Registry<TransformFamily>& transform_families() {
    static const Registry<TransformFamily> table(
        "transform", {
                         {{{"whiten",
                            "transform around an estimator, as in whiten+gd-shrink: the block is whitened, shrunk and "
                            "transformed back",
                            {{"diagonal", {}, "estimate row and column variances, the default"},
                             {"full", {}, "estimate the whole row and column covariances"},
                             {"--row-spectrum", any_text("SPEC|FILE.npy"),
                              "the row covariance is known (in a study: law = \"known\")"},
                             {"--col-spectrum", any_text("SPEC|FILE.npy"), "the same for the column covariance"}},
                            "Leeb & Romanov 2021"},
                           true},
                          make_whiten},
                         {{{"dyson",
                            "transform around an estimator, as in dyson+gd-shrink: whitening by row and column "
                            "variances from the resolvent of the block",
                            {},
                            "Landa & Kluger 2023"}},
                          make_dyson},
                         {{{"unrope",
                            "in front of a method of kv run or kv encode, as in unrope+eoptshrink+tq-mse: codes keys "
                            "with their rotary embedding undone, and applies it again to decoded keys",
                            {},
                            "Hooper et al. 2024 (KVQuant)"}},
                          reject_positions},
                         {{{"mean",
                            "in front of a method, as in unrope+mean+svd:rd+tcq: the means of the columns of keys (--axis key) "
                            "are stored in fp16 and subtracted first; for models with a key bias",
                            {},
                            "ours"}},
                          reject_means},
                     });
    return table;
}

}  // namespace

const std::vector<EstimatorEntry>& transforms() {
    static const auto entries = transform_families().entries<EstimatorEntry>();
    return entries;
}

bool is_transform(std::string_view text) { return transform_families().find(parse_name(text).name) != nullptr; }

TransformSpec transform_spec(std::string_view text) {
    const ParsedName parsed = parse_name(text);
    const TransformFamily& family = transform_families().named(parsed.name);
    return {&family, NameOptions(parsed, family.entry.options)};
}

const EstimatorEntry& TransformSpec::entry() const { return family->entry; }

Transform TransformSpec::make(const KnownNoise& known) const {
    return {named.text(), family->make(named, known), entry().takes_noise_law && !known.empty()};
}

}  // namespace spiked::estimators
