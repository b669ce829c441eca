#include "estimators/spectral/eoptshrink.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/spectral/spectral_family.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/finite_size.hpp"

template <>
struct spiked::EnumNames<spiked::estimators::Imputation> {
    static constexpr EnumName<spiked::estimators::Imputation> table[] = {
        {spiked::estimators::Imputation::none, "none"},
        {spiked::estimators::Imputation::from_j, "j"},
        {spiked::estimators::Imputation::from_j_minus_1, "j-1"},
        {spiked::estimators::Imputation::twice_rank, "2r"}};
};

template <>
struct spiked::EnumNames<spiked::estimators::EdgeRule> {
    static constexpr EnumName<spiked::estimators::EdgeRule> table[] = {
        {spiked::estimators::EdgeRule::two_points, "points"}, {spiked::estimators::EdgeRule::fit, "fit"}};
};

namespace spiked::estimators {
namespace {

// The choices that EOptShrinkOptions holds as truth values.

enum class AtomWeight { over_rest, over_side };
enum class Clipping { yes, no };

AtomWeight weight_of(const EOptShrinkOptions& options) {
    return options.mass_of_rest ? AtomWeight::over_rest : AtomWeight::over_side;
}
Clipping clipping_of(const EOptShrinkOptions& options) { return options.clip ? Clipping::yes : Clipping::no; }

}  // namespace
}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::AtomWeight> {
    static constexpr EnumName<spiked::estimators::AtomWeight> table[] = {
        {spiked::estimators::AtomWeight::over_rest, "rest"}, {spiked::estimators::AtomWeight::over_side, "side"}};
};

template <>
struct spiked::EnumNames<spiked::estimators::Clipping> {
    static constexpr EnumName<spiked::estimators::Clipping> table[] = {{spiked::estimators::Clipping::yes, "yes"},
                                                                       {spiked::estimators::Clipping::no, "no"}};
};

namespace spiked::estimators {
namespace {

/// Options of eoptshrink itself, without those of rank rules. The defaults are those of EOptShrinkOptions.
const std::vector<OptionSpec>& own_options() {
    const EOptShrinkOptions usual;
    static const std::vector<OptionSpec> options = {
        {"paper", {}, "the paper's text taken literally: pilot=d power=2 impute=j mass=side"},
        {"author", {}, "the author's program: factor=1.1 margin=0 impute=2r mass=side clip=no"},
        {"edgefit", {}, "edge=fit: rank by a line through the top of the noise, sees up to 2k signals"},
        {"rank", rank_value(), "oracle rank, or a rule of `spiked list ranks`; default: by the edge"},
        {"pilot", one_of_or({"p", "d"}, whole("p|d|K", 1)),
         "number k of singular values that the edge is found from: p by the short side, d by the columns, or K itself",
         usual.pilot_from_columns ? "d" : "p"},
        {"edge", one_of<EdgeRule>(),
         "bulk edge by extrapolation of two values, or by a line through the top of the noise",
         std::string(enum_name(usual.edge))},
        {"factor", number("F", {.least = 0.0}), "factor on the distance by which edge=points extrapolates",
         fmt::format("{}", usual.factor)},
        {"power", one_of({"1", "2"}), "power of the eigenvalues from which the edge is extrapolated",
         std::to_string(usual.power)},
        {"margin", number("M", {.least = 0.0}), "least relative distance of a component to the edge", "p^(-1/3)"},
        {"cap", whole("R"), "largest rank of edge=fit and rank=ed", "2k"},
        {"impute", one_of<Imputation>(), "how noise eigenvalues under the signal are replaced",
         std::string(enum_name(usual.imputation))},
        {"mass", one_of<AtomWeight>(), "weight of a noise eigenvalue: 1 over their number, or over p",
         std::string(enum_name(weight_of(usual)))},
        {"clip", one_of<Clipping>(), "clip overlaps to [0, 1] and shrunk values to [0, observed]",
         std::string(enum_name(clipping_of(usual)))}};
    return options;
}

/// The keys that a rank rule does not claim; cap is that of edge=fit, or of the rule.
std::vector<std::string> own_keys(EdgeRule edge) {
    std::vector<std::string> keys;
    for (const auto& option : own_options())
        if (option.value.kind != ValueSpec::Kind::none && (option.key != "cap" || edge == EdgeRule::fit))
            keys.push_back(option.key);
    return keys;
}

EOptShrinkOptions variant_of(const NameOptions& named) {
    if (named.words().size() > 1)
        throw usage_error("\"{}\": {} and {} are two variants (only one is possible): leave one out", named.text(),
                          named.words()[0], named.words()[1]);
    return named.has_word("paper")     ? EOptShrinkOptions::paper()
           : named.has_word("author")  ? EOptShrinkOptions::author()
           : named.has_word("edgefit") ? EOptShrinkOptions::edge_fit()
                                       : EOptShrinkOptions{};
}

/// Rejects options without effect.
void reject_options_without_effect(const NameOptions& named, const EOptShrinkOptions& options) {
    const auto reject = [&](const char* key, bool without_effect, const char* why) {
        if (without_effect && named.has_option(key))
            throw usage_error("\"{}\": {}= has no effect ({}): leave it out", named.text(), key, why);
    };
    const bool fit = options.edge == EdgeRule::fit;
    reject("factor", fit, "it stretches the edge of edge=points");
    reject("margin", !fit && (options.rank || options.rank_rule || options.block_rank_rule),
           "the rank it decides is given");
}

EOptShrinkOptions parsed_options(const NameOptions& named, theory::Loss loss) {
    EOptShrinkOptions options = variant_of(named);
    options.loss = loss;
    if (const auto edge = named.choice<EdgeRule>("edge")) options.edge = *edge;
    options.cap = named.whole("cap");
    const std::vector<std::string> own = own_keys(options.edge);
    if (const auto rank = named.text_of("rank")) {
        const GivenRank given = given_rank(named, *rank, own);
        options.rank = given.fixed;
        options.rank_rule = given.rule;
        options.block_rank_rule = given.block_rule;
    } else {
        reject_rule_options(named, own);
    }
    if (const auto pilot = named.text_of("pilot")) {
        options.pilot_from_columns = *pilot == "d";
        if (const auto k = to_integer(*pilot)) options.pilot = static_cast<std::size_t>(*k);
    }
    if (const auto factor = named.number("factor")) options.factor = *factor;
    if (const auto power = named.whole("power")) options.power = static_cast<int>(*power);
    if (const auto margin = named.number("margin")) options.margin = margin;
    if (const auto rule = named.choice<Imputation>("impute")) options.imputation = *rule;
    if (const auto weight = named.choice<AtomWeight>("mass")) options.mass_of_rest = weight == AtomWeight::over_rest;
    if (const auto clip = named.choice<Clipping>("clip")) options.clip = clip == Clipping::yes;
    reject_options_without_effect(named, options);
    return options;
}

/// The function of the estimator; its type tells eoptshrink_options which estimators are eOptShrink.
struct EOptShrink {
    EOptShrinkOptions options;

    Shrinkage operator()(std::span<const double> singular_values, Shape shape) const {
        return eoptshrink(singular_values, shape, options);
    }
};

SpectralEstimator make(const NameOptions& named, theory::Loss loss, const KnownLaw&) {
    const EOptShrinkOptions options = parsed_options(named, loss);
    SpectralEstimator estimator{named.text(), EOptShrink{options}, options.rank ? *options.rank + 1 : 0};
    if (options.block_rank_rule) {
        estimator.estimate_block =
            ranked_by_block(options.block_rank_rule,
                            [options](std::span<const double> singular_values, Shape shape, std::size_t found) {
                                EOptShrinkOptions ranked = options;
                                ranked.rank_rule = [found](const RelativeSpectrum&) { return found; };
                                return eoptshrink(singular_values, shape, ranked);
                            });
    }
    return estimator;
}

}  // namespace

EOptShrinkOptions EOptShrinkOptions::paper() {
    EOptShrinkOptions options;
    options.pilot_from_columns = true;
    options.power = 2;
    options.imputation = Imputation::from_j;
    options.mass_of_rest = false;
    return options;
}

EOptShrinkOptions EOptShrinkOptions::author() {
    EOptShrinkOptions options;
    options.factor = 1.1;
    options.margin = 0.0;
    options.imputation = Imputation::twice_rank;
    options.mass_of_rest = false;
    options.clip = false;
    return options;
}

EOptShrinkOptions EOptShrinkOptions::edge_fit() {
    EOptShrinkOptions options;
    options.edge = EdgeRule::fit;
    return options;
}

EOptShrinkRule eoptshrink_rule(Shape shape, const EOptShrinkOptions& options) {
    const std::size_t p = shape.short_side();
    const std::size_t side = options.pilot_from_columns ? shape.columns : p;
    const std::size_t k = theory::pilot_within(options.pilot.value_or(theory::pilot_count(side)), p);
    return {.loss = options.loss,
            .pilot = k,
            .edge = options.edge,
            .factor = options.factor,
            .power = options.power,
            .margin = options.margin.value_or(std::pow(static_cast<double>(side), -1.0 / 3.0)),
            .bound = options.edge == EdgeRule::fit ? options.cap.value_or(2 * k) : k,
            .imputation = options.imputation,
            .mass_of_rest = options.mass_of_rest,
            .clip = options.clip,
            .rank_is_given = options.rank.has_value(),
            .rank = options.rank.value_or(0)};
}

Shrinkage eoptshrink(std::span<const double> singular_values, Shape shape, const EOptShrinkOptions& options) {
    const RelativeSpectrum spectrum(singular_values, shape);
    if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
    const std::size_t p = spectrum.size();
    EOptShrinkRule rule = eoptshrink_rule(shape, options);
    const std::size_t k = rule.pilot;
    if (k == 0) return nothing_found("too few singular values for an edge estimate (at least 3 are needed)");
    if (options.rank_rule) {
        rule.rank_is_given = true;
        rule.rank = options.rank_rule(spectrum);
        while (rule.rank > 0 && needed_values(rule.rank, k, rule.imputation) > p) --rule.rank;
    }

    Shrinkage result;
    if (!rule.rank_is_given)
        result.note =
            more_than_bound(spectrum.eigenvalues, k, std::pow(static_cast<double>(p), -1.0 / 3.0), rule.bound);
    std::vector<double> weights;
    if (rule.edge == EdgeRule::fit) weights = intercept_weights(k);
    std::vector<double> noise(p);
    const ShrinkageAnswer answer =
        estimate_eoptshrink(rule, shape, spectrum.relative(), weights, noise,
                            [&](std::size_t, const ShrunkComponent& component) { append(result, component); });
    if (answer.outcome == ShrinkageOutcome::exactly_low_rank)
        return unshrunk(spectrum, rule.rank_is_given ? rule.rank : spectrum.above_rounding,
                        "the block is exactly of low rank: nothing to shrink");
    result.bulk_edge = spectrum.eigenvalue(answer.edge);
    if (answer.outcome == ShrinkageOutcome::no_room) {
        // Without visible noise nothing is estimated.
        const std::size_t needed = needed_values(answer.rank, k, rule.imputation);
        result.note =
            fmt::format("rank {} leaves fewer than {} noise eigenvalues: set to 0", answer.rank, needed - answer.rank);
        return result;
    }
    result.rank = answer.rank;
    noise.resize(answer.noise);
    for (double& mu : noise) mu *= spectrum.unit * spectrum.unit;
    result.noise_eigenvalues = std::move(noise);
    return result;
}

const EOptShrinkOptions* eoptshrink_options(const SpectralEstimator& estimator) {
    const auto* function = estimator.estimate.target<EOptShrink>();
    return function == nullptr ? nullptr : &function->options;
}

SpectralFamily eoptshrink_family() {
    SpectralFamily family{
        {{"eoptshrink", "optimal shrinkage under noise of unknown separable covariance, rank by the bulk edge",
          own_options(), "paper Algorithm 2, reference reading; Su & Wu 2022"}},
        make};
    auto& options = family.entry.options;
    for (auto& option : options_of_rank_rules("rank="))
        if (std::none_of(options.begin(), options.end(), [&](const auto& own) { return own.key == option.key; }))
            options.push_back(std::move(option));
    return family;
}

}  // namespace spiked::estimators
