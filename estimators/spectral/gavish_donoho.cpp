#include "estimators/spectral/gavish_donoho.hpp"

#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/spectral/spectral_family.hpp"
#include "estimators/spectral/white_shrinkage.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/marchenko_pastur.hpp"

namespace spiked::estimators {
namespace {

Shrinkage gavish_donoho(std::span<const double> singular_values, Shape shape, const GavishDonohoOptions& options,
                        bool hard) {
    const RelativeSpectrum spectrum(singular_values, shape);
    if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
    const WhiteRule rule = white_rule(shape, options, hard);
    const RelativeValues values = spectrum.relative();
    const double level = options.noise_level || options.rule == NoiseLevelRule::median
                             ? white_level(rule, values)
                             : white_noise_level(spectrum.values, shape, options.rule);
    Shrinkage result;
    const ShrinkageAnswer answer = estimate_white(
        rule, level, values, [&](std::size_t, const ShrunkComponent& component) { append(result, component); });
    if (answer.outcome == ShrinkageOutcome::exactly_low_rank)
        return unshrunk(spectrum, spectrum.above_rounding,
                        "more than half the singular values are 0: low rank, no noise level to estimate");
    result.rank = answer.rank;
    result.bulk_edge = spectrum.eigenvalue(answer.edge);
    result.noise_level = level * spectrum.unit;
    return result;
}

/// The function of the estimator; its type tells white_rule which estimators are of this kind.
struct GavishDonoho {
    GavishDonohoOptions options;
    bool hard;

    Shrinkage operator()(std::span<const double> singular_values, Shape shape) const {
        return gavish_donoho(singular_values, shape, options, hard);
    }
};

std::vector<OptionSpec> option_specs() {
    return {{"sigma", number("S", {.above = 0.0}),
             "standard deviation of the noise entries; default: from the median singular value"},
            {"quantile",
             {},
             "estimate the noise level from the values below the edge alone, which many signals do not disturb"}};
}

GavishDonohoOptions white_options(const NameOptions& named, theory::Loss loss) {
    GavishDonohoOptions options{.loss = loss, .noise_level = named.number("sigma")};
    if (named.has_word("quantile")) {
        if (options.noise_level)
            throw usage_error("\"{}\": a known sigma needs no quantile: leave one out", named.text());
        options.rule = NoiseLevelRule::quantile;
    }
    return options;
}

SpectralEstimator white_estimator(const NameOptions& named, theory::Loss loss, bool hard) {
    const GavishDonohoOptions options = white_options(named, loss);
    SpectralEstimator estimator{named.text(), GavishDonoho{options, hard}};
    estimator.needs_all_values = !options.noise_level;
    return estimator;
}

}  // namespace

double hard_threshold_coefficient(double aspect) { return std::sqrt(theory::white::hard_threshold_squared(aspect)); }

double median_threshold_coefficient(double aspect) {
    return hard_threshold_coefficient(aspect) / std::sqrt(theory::MarchenkoPastur(AspectRatio(aspect)).median().value);
}

WhiteRule white_rule(Shape shape, const GavishDonohoOptions& options, bool hard) {
    const double long_side = static_cast<double>(shape.long_side());
    const double root_rows = std::sqrt(static_cast<double>(shape.rows));
    const double root_columns = std::sqrt(static_cast<double>(shape.columns));
    return {.loss = options.loss,
            .hard = hard,
            .aspect = AspectRatio::of(shape.rows, shape.columns).value(),
            .root_columns = root_columns,
            .threshold = hard ? hard_threshold_coefficient(static_cast<double>(shape.short_side()) / long_side) *
                                    std::sqrt(long_side)
                              : root_rows + root_columns,
            .level = options.noise_level.value_or(0.0),
            .median_root = options.noise_level ? 1.0 : median_root(shape.short_side(), shape)};
}

std::optional<WhiteRule> white_rule(const SpectralEstimator& estimator, Shape shape) {
    const auto* function = estimator.estimate.target<GavishDonoho>();
    if (function == nullptr || function->options.rule != NoiseLevelRule::median) return std::nullopt;
    return white_rule(shape, function->options, function->hard);
}

Shrinkage gavish_donoho_hard(std::span<const double> singular_values, Shape shape, const GavishDonohoOptions& options) {
    return gavish_donoho(singular_values, shape, options, true);
}

Shrinkage gavish_donoho_shrink(std::span<const double> singular_values, Shape shape,
                               const GavishDonohoOptions& options) {
    return gavish_donoho(singular_values, shape, options, false);
}

SpectralFamily gavish_donoho_hard_family() {
    return {{{"gd-hard",
              "optimal hard threshold for singular values under white noise, without shrinkage",
              option_specs(),
              "Gavish & Donoho 2014",
              {"gavish-donoho"}},
             false,
             {},
             true},
            [](const NameOptions& named, theory::Loss loss, const KnownLaw&) -> SpectralEstimator {
                return white_estimator(named, loss, true);
            }};
}

SpectralFamily gavish_donoho_shrink_family() {
    return {{{"gd-shrink", "optimal shrinkage under white noise for any of the three losses", option_specs(),
              "Gavish & Donoho 2017; Leeb 2022 for the operator norm"}},
            [](const NameOptions& named, theory::Loss loss, const KnownLaw&) -> SpectralEstimator {
                return white_estimator(named, loss, false);
            }};
}

}  // namespace spiked::estimators
