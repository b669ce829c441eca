#include <algorithm>
#include <cmath>

#include "estimators/spectral/gavish_donoho.hpp"
#include "estimators/spectral/noise_level.hpp"
#include "validation/claims/parts/fixture.hpp"

// Claims of methods for white noise: the noise level from singular values, and the hard threshold.

namespace spiked::validation {
namespace {

using estimators::NoiseLevelRule;

/// The estimated standard deviation of the entries of the noise over the true one, minus 1.
Criterion level(Form form, std::string name, NoiseLevelRule rule, FixtureShape shape, std::string setup,
                Control control) {
    return {.form = form,
            .name = std::move(name),
            .measures = "estimated over true level of the noise minus 1, " + setup,
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                return [=, fixture = make_fixture(shape, place.size)](std::uint64_t replicate) {
                    estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
                    const auto& values = block.singular_values();
                    const auto sides = block.shape();
                    double found = white_noise_level(values, sides, rule);
                    double wrong = found;
                    if (place.control_is("median")) wrong = white_noise_level(values, sides, NoiseLevelRule::median);
                    if (place.control_is("middle")) {
                        // The squared singular values over the long side have support (1 -+ sqrt(short / long))^2.
                        const auto longer = static_cast<double>(sides.long_side());
                        const double middle = 1.0 + static_cast<double>(sides.short_side()) / longer;
                        wrong = 0.5 * (values[values.size() / 2 - 1] + values[values.size() / 2]) /
                                std::sqrt(longer * middle);
                    }
                    found += place.fault * (wrong - found);
                    return found * std::sqrt(fixture.d()) - 1.0;
                };
            },
            .region = [](std::size_t size) { return around(0.0, margin_at(size, 0.01, 1.0)); },
            .quick = {{128, 300}},
            .full = {{128, 1000}, {256, 400}},
            .negative_controls = {linear(std::move(control))}};
}

/// The number of singular values above the hard threshold for a known noise level.
std::size_t counted(const std::vector<double>& values, estimators::Shape shape, double sigma, const TrialPlace& place) {
    const double aspect = static_cast<double>(shape.short_side()) / static_cast<double>(shape.long_side());
    const double coefficient = estimators::hard_threshold_coefficient(aspect);
    const double root = std::sqrt(static_cast<double>(shape.long_side())) * sigma;
    const auto above = [&](auto reaches) {
        return static_cast<std::size_t>(std::count_if(values.begin(), values.end(), reaches));
    };
    if (place.control_is("short-side")) {
        const double smaller = 1.0 - place.fault * (1.0 - std::sqrt(aspect));
        return above([&](double value) { return value > smaller * coefficient * root; });
    }
    if (place.control_is("eigenvalue"))
        return above([&](double value) { return std::pow(value, 1.0 + place.fault) > coefficient * root; });
    return estimators::gavish_donoho_hard(values, shape, {.noise_level = sigma}).rank;
}

Criterion known_level() {
    return {.name = "known-level",
            .measures =
                "fraction of blocks with as many values above the hard threshold, level known, as spikes, two of "
                "them at 4 and 3 thresholds, white noise, n/d = 1/4",
            .summary = Summary::share,
            .prepare = [](const TrialPlace& place) -> Trial {
                return
                    [=, fixture = make_fixture({Noise::white, 0.25, {4.0, 3.0}}, place.size)](std::uint64_t replicate) {
                        estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
                        const double sigma = 1.0 / std::sqrt(fixture.d());
                        return counted(block.singular_values(), block.shape(), sigma, place) == 2 ? 1.0 : 0.0;
                    };
            },
            .region = [](std::size_t) { return at_least(1.0, 0.05); },
            .quick = {{128, 500}},
            .full = {{128, 2000}, {256, 800}},
            .negative_controls = {{"short-side", "the root of the short side in the threshold",
                                   FaultSize{0.5, "of the threshold, too small", 0.0, "a threshold {} % too small"}},
                                  {"eigenvalue", "an eigenvalue compared with the threshold of a singular value",
                                   FaultSize{2.0, "as power of the singular value", 1.0,
                                             "a singular value to the power of {} in its place"}}}};
}

/// For a spike whose observed value lies on the threshold, keeping it costs as much as removing it. The statistic is
/// the loss of keeping divided by the loss of removing, minus 1.
Criterion indifference() {
    constexpr double aspect = 0.25;
    constexpr double near_edge = 1.07 * 1.5 / 1.758;  // over the threshold, whose coefficient is 1.758; the edge is 1.5
    return {.name = "indifference",
            .measures =
                "||S - S~_1||^2 / ||S||^2 - 1, S~_1 the first observed component, one spike whose value lies on the "
                "threshold, white noise, n/d = 1/4",
            .summary = Summary::mean,
            .prepare = [](const TrialPlace& place) -> Trial {
                const double factor = 1.0 + 0.1 * place.fault_of("larger") - (1.0 - near_edge) * place.fault_of("edge");
                const double threshold = factor * estimators::hard_threshold_coefficient(aspect);
                Fixture fixture = make_fixture({Noise::white, aspect, {}}, place.size);
                fixture.model.strengths = {fixture.law->strength_of({threshold * threshold})};
                return [=, fixture = std::move(fixture)](std::uint64_t replicate) {
                    const auto [sample, block] = fixture.decomposed(place, replicate);
                    const auto first = block.vectors(1);
                    const arma::mat kept = block.singular_values()[0] * first.left.col(0) * first.right.col(0).t();
                    return arma::accu(arma::square(sample.signal - kept)) / arma::accu(arma::square(sample.signal)) -
                           1.0;
                };
            },
            .region = [](std::size_t size) { return around(0.0, margin_at(size, 0.08, 0.5)); },
            .quick = {{128, 600}},
            .full = {{128, 800}, {256, 750}},
            .negative_controls = {{"larger", "a threshold 10 % larger",
                                   FaultSize{0.1, "of the threshold, too large", 0.0, "a threshold {} % too large"}},
                                  {"edge", "a threshold 7 % above the edge",
                                   FaultSize{1.0 - near_edge, "of the threshold, too small", 0.0,
                                             "a threshold {} % too small"}}}};
}

}  // namespace

std::vector<Claim> white_noise_claims() {
    std::vector<double> many;
    for (int i = 0; i < 13; ++i) many.push_back(6.0 + i);
    return {
        {.id = "noise.level",
         .place = "Gavish and Donoho 2014, Section 3; ours where signals are many",
         .statement = "the median singular value over that of the Marchenko-Pastur law is the level of white noise",
         .plain = {"The median singular value gives the level of white noise.", "relative error of the level",
                   "median"},
         .corrected = "so without signals; with 13 signals among 128 or 256 directions the values below the edge "
                      "alone give it within a hundredth, the median of all does not",
         .criteria = {level(Form::printed, "median", NoiseLevelRule::median, {Noise::white, 0.25, {}},
                            "median rule, white noise, n/d = 1/4",
                            {"middle", "the middle of the support in place of the median of the law",
                             FaultSize{1.0, "of the way to the level from the middle of the support", 0.0,
                                       "a level {} % of the way to that from the middle of the support"}}),
                      level(Form::corrected, "many-signals", NoiseLevelRule::quantile, {Noise::white, 1.0, many},
                            "quantile rule, 13 spikes at 6 to 18 thresholds, white noise",
                            {"median", "the median of all values",
                             FaultSize{1.0, "of the way to the level from the median", 0.0,
                                       "a level {} % of the way to that from the median of all values"}})}},
        {.id = "hard-threshold",
         .place = "Gavish and Donoho 2014, equation 3",
         .statement =
             "lambda*(beta) sqrt(long side) sigma is the best hard threshold: above it keeping a value costs less than "
             "removing it, and no noise lies there",
         .plain = {"The hard threshold is where keeping costs as much as removing.",
                   "relative difference of the two losses", "indifference"},
         .corrected = "",
         .criteria = {known_level(), indifference()}}};
}

}  // namespace spiked::validation
