#include "estimators/transforms/transform.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "estimators/transforms/biwhitening.hpp"
#include "estimators/transforms/clipping.hpp"
#include "estimators/transforms/dyson_equalizer.hpp"
#include "estimators/transforms/whitening.hpp"

namespace spiked::estimators {

/// An entry of the table of transforms.
struct TransformFamily {
    using Enter = decltype(Transform::enter);
    EstimatorEntry entry;
    Enter (*make)(const NameOptions& named, const KnownNoise& known);
    bool whole_counts = false;  ///< Transform::whole_counts, where its name has no options
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

Enter make_biwhiten(const NameOptions& named, const KnownNoise&) {
    if (named.has_word("fit")) {
        for (const char* key : {"a", "b", "c"})
            if (named.has_option(key))
                throw usage_error("\"{}\": fit finds the variance, {}= gives it: leave one out", named.text(), key);
        return biwhiten_fitted;
    }
    const VarianceFunction variance{named.number_or_default("a"), named.number_or_default("b"),
                                    named.number_or_default("c")};
    if (variance.constant == 0.0 && variance.linear == 0.0 && variance.square == 0.0)
        throw usage_error("\"{}\": entries without variance have no noise: give a=, b= or c=", named.text());
    return [variance](AnalysedBlock& block) { return biwhiten(block, variance); };
}

Enter make_clip(const NameOptions& named, const KnownNoise&) {
    std::optional<double> limit;
    if (!named.has_word("fit"))
        limit = named.number_or_default("at");
    else if (named.has_option("at"))
        throw usage_error("\"{}\": fit finds the limit, at= gives it: leave one out", named.text());
    return [limit](AnalysedBlock& block) { return clip_outliers(block, limit); };
}

Enter reject_positions(const NameOptions& named, const KnownNoise&) {
    throw usage_error(
        "\"{}\": unrope needs a method that codes a dump (it needs token positions): write unrope+eoptshrink+tq-mse "
        "with spiked kv run or kv encode",
        named.text());
}

Enter reject_means(const NameOptions& named, const KnownNoise&) {
    throw usage_error("\"{}\": means are stored by a method, not by an estimator: write mean+svd:rd+tcq", named.text());
}

const Registry<TransformFamily>& transform_families() {
    static const Registry<TransformFamily> table(
        "transform",
        {
            {{{"whiten",
               "transform around an estimator, as in whiten+gd-shrink: the block is whitened, shrunk and transformed "
               "back",
               {{"diagonal", {}, "estimate row and column variances, the default"},
                {"full", {}, "estimate the whole row and column covariances"},
                {"--row-spectrum", any_text("SPEC|FILE.npy"),
                 "the row covariance is known (in a study: law = \"known\")"},
                {"--col-spectrum", any_text("SPEC|FILE.npy"), "the same for the column covariance"}},
               "Leeb & Romanov 2021"},
              true},
             make_whiten},
            {{{"dyson",
               "transform around an estimator, as in dyson+gd-shrink: whitening by row and column variances from the "
               "resolvent of the block",
               {},
               "Landa & Kluger 2023"}},
             make_dyson},
            {{{"biwhiten",
               "transform around an estimator, as in biwhiten+gd-shrink, for counts and other entries whose variance a "
               "+ b m + c m^2 depends on their mean m; Poisson counts by default",
               {{"a", number("A", {.least = 0.0}), "variance at mean 0, such as read noise", "0"},
                {"b", number("B", {.least = 0.0}), "variance for each unit of the mean", "1"},
                {"c", number("C", {.above = -1.0}),
                 "variance for the square of the mean: the dispersion of negative binomial counts, -1/N of binomial "
                 "ones",
                 "0"},
                {"fit", {}, "find b and c in the block, from the law of its singular values"}},
               "Landa, Zhang & Kluger 2022"}},
             make_biwhiten,
             true},
            {{{"clip",
               "transform around an estimator, as in clip+tw-test, for noise of heavy tails: outlying entries of the "
               "residual are drawn in, and the signal is kept",
               {{"at", number("C", {.least = 0.1, .most = 100.0}),
                 "robust standard deviations (1.4826 times the median of absolute values) at which they are clipped",
                 "2"},
                {"fit", {}, "find the limit of least variance in the block"}},
               "Huber 1964; Perry, Wein, Bandeira & Moitra 2018"}},
             make_clip},
            {{{"unrope",
               "in front of a method of kv run or kv encode, as in unrope+eoptshrink+tq-mse: codes keys with their "
               "rotary embedding undone, and applies it again to decoded keys",
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
    return {.name = named.text(),
            .enter = family->make(named, known),
            .exact = entry().takes_noise_law && !known.empty(),
            .whole_counts = family->whole_counts && named.text() == entry().name};
}

}  // namespace spiked::estimators
