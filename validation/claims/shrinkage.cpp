#include "theory/laws/shrinkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimators/spectral/empirical_law.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "theory/laws/bulk_distribution.hpp"
#include "validation/claims/parts/fixture.hpp"

// Claims on eOptShrink with known rank: shrunk values, bulk edge, noise law.

namespace spiked::validation {
namespace {

double optimal_in_white_noise(const Fixture& fixture, theory::Loss loss) {
    const theory::Spectrum white = theory::identity_spectrum();
    return theory::SeparableLaw(white, white, fixture.law->aspect())
        .spike(fixture.model.strengths[0])
        .shrunk(loss)
        .value;
}

/// The control of the optimal value of white noise, with its size at d = 128, nearly that of all sizes.
Control white_optimum(const FixtureShape& shape, theory::Loss loss) {
    const Fixture fixture = make_fixture(shape, 128);
    const double off = optimal_in_white_noise(fixture, loss) / fixture.spike(0).shrunk(loss).value - 1.0;
    const char* const how = off > 0.0 ? "too large" : "too small";
    return linear({"white-law", "optimal value of white noise",
                   FaultSize{std::abs(off), fmt::format("of the optimal value, {}", how), 0.0,
                             fmt::format("an optimal value {{}} % {}", how)}});
}

/// A control whose shrunk value is that of a wrong formula, or lies on the way there.
Control wrong_formula(std::string name, std::string description, const std::string& where) {
    return linear({std::move(name), std::move(description),
                   FaultSize{1.0, "of the way to the value of the wrong formula", 0.0,
                             "a shrunk value {} % of the way to " + where}});
}

/// The shrunk value of one spike minus the optimal one, or their ratio minus 1, with known rank.
Trial shrinker_trial(const TrialPlace& place, const FixtureShape& shape, theory::Loss loss, bool relative) {
    const Fixture fixture = make_fixture(shape, place.size);
    const double right = fixture.spike(0).shrunk(loss).value;
    const double optimal = right + place.fault_of("white-law") * (optimal_in_white_noise(fixture, loss) - right);
    const double kept = place.fault_of("truncated");
    const double off = place.fault;
    const bool square_only = place.control_is("square-only");
    const bool unclipped = place.control_is("unclipped");
    const bool one_transform = place.control_is("one-transform");
    const bool power = place.control_is("power");
    return [=](std::uint64_t replicate) {
        estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
        const auto& values = block.singular_values();
        const auto found = shrink_at_rank(values, block.shape(), 1, loss);
        double value = found.shrunk[0] + kept * (values[0] - found.shrunk[0]);
        // Negative controls: errors of published programs, applied to the same estimates.
        const double a = found.overlap_left[0];
        const double b = found.overlap_right[0];
        double wrong = value;
        if (square_only) wrong = found.strengths[0];
        if (unclipped) wrong = found.strengths[0] * std::abs(std::sqrt(a * b) - std::sqrt((1.0 - a) * (1.0 - b)));
        if (one_transform) {
            estimators::EmpiricalLaw law(found.noise_eigenvalues, block.shape());
            law.aspect = 1.0;
            const auto estimate = estimate_outlier(law, block.shape(), {values[0] * values[0]});
            wrong = estimate.strength * std::sqrt(estimate.overlap_left * estimate.overlap_right);
        }
        if (power) {
            const double x = found.strengths[0];
            wrong = (std::pow(values[0], 4) - 1.0 - x * values[0]) / (x * x * values[0]);
        }
        value += off * (wrong - value);
        return relative ? value / optimal - 1.0 : value - optimal;
    };
}

Claim shrinker(theory::Loss loss) {
    const std::string name(theory::name_of(loss));
    const auto rate = [=](Noise noise, double thresholds, Control control) -> Criterion {
        return {.name = fmt::format("rate-{}", name_of(noise)),
                .measures = fmt::format("shrunk value minus the optimal one, {} loss, rank known, one spike at {} "
                                        "thresholds, {} noise",
                                        name, thresholds, name_of(noise)),
                .summary = Summary::rate,
                .prepare =
                    [=](const TrialPlace& place) {
                        return shrinker_trial(place, {noise, 1.0, {thresholds}}, loss, false);
                    },
                .region = [](std::size_t) { return at_most(-0.5, 0.15); },
                .quick = {{32, 4000}, {64, 3000}, {128, 1500}},
                .full = {{64, 3000}, {128, 2000}, {256, 1000}, {512, 300}},
                .negative_controls = {std::move(control)}};
    };
    const auto level = [=](std::string criterion_name, FixtureShape shape, bool relative, std::string setup,
                           double margin, std::vector<Control> negative_controls) -> Criterion {
        return {.name = std::move(criterion_name),
                .measures = fmt::format(
                    "{}, {} loss, rank known, {}",
                    relative ? "shrunk value over the optimal one minus 1" : "shrunk value minus the optimal one", name,
                    setup),
                .summary = Summary::mean,
                .prepare = [=](const TrialPlace& place) { return shrinker_trial(place, shape, loss, relative); },
                .region = [=](std::size_t size) { return around(0.0, margin_at(size, margin, 0.5)); },
                .quick = {{128, 800}},
                .full = {{128, 1400}, {256, 1000}, {512, 600}},
                .negative_controls = std::move(negative_controls)};
    };
    const char* best_for = loss == theory::Loss::frobenius ? "squared error"
                           : loss == theory::Loss::nuclear ? "nuclear norm"
                                                           : "largest error";
    const Control truncated =
        linear({"truncated", "observed values kept as they are",
                FaultSize{1.0, "of the shrinkage left out", 0.0, "{} % of the shrinkage left out"}});
    Claim claim{.id = "shrinker." + name,
                .place = "paper, appendix, optimal shrinker convergence",
                .statement = fmt::format("given the rank, the shrunk values approach the optimal ones for the {} loss "
                                         "within d^-1/2",
                                         name),
                .plain = {fmt::format("Given the rank, the shrunk values are the best for the {}.", best_for),
                          "relative error of the shrunk value", "level-coloured"},
                .criteria = {rate(Noise::white, 2.0, truncated),
                             rate(Noise::coloured, 1.5,
                                  loss == theory::Loss::operator_norm
                                      // The optimal value for white noise differs too little to serve as a control.
                                      ? truncated
                                      : white_optimum({Noise::coloured, 1.0, {1.5}}, loss)),
                             level("level-coloured", {Noise::coloured, 0.5, {2.0}}, true,
                                   "one spike at 2 thresholds, coloured noise, n/d = 0.5", 0.06, {truncated})}};
    if (loss != theory::Loss::nuclear)
        claim.criteria.push_back(
            level("level-wide", {Noise::white, 0.25, {1.8}}, true,
                  "one spike at 1.8 thresholds, white noise, n/d = 1/4", 0.06,
                  {loss == theory::Loss::operator_norm
                       ? wrong_formula("square-only", "the formula of square blocks, the strength itself",
                                       "the strength itself")
                       : wrong_formula("one-transform", "m2 = m1: the zero eigenvalues of the long side forgotten",
                                       "that of equal transforms")}));
    if (loss == theory::Loss::nuclear) {
        claim.criteria.push_back(
            level("level-weak", {Noise::white, 1.0, {1.1}}, false,
                  "one spike at 1.1 thresholds, where the optimal one is 0, white noise", 0.1,
                  {wrong_formula("unclipped", "the absolute value of the formula, not cut off below 0",
                                 "the absolute value of the formula")}));
        // The shrunk value is 0 in all but a few trials: 1 is that of a spike of two thresholds.
        claim.criteria.back().reach = 1.0;
        claim.criteria.push_back(
            level("level-white", {Noise::white, 1.0, {2.0}}, true, "one spike at 2 thresholds, white noise", 0.06,
                  {wrong_formula("power", "the fourth power of the observed value in place of the strength's",
                                 "that of the observed value's fourth power")}));
    }
    return claim;
}

/// Relative error of the estimated edge, for a spike of 2.5 thresholds.
Criterion edge_rate(Noise noise) {
    return {.name = fmt::format("rate-{}", name_of(noise)),
            .measures =
                fmt::format("estimated over true edge minus 1, one spike at 2.5 thresholds, {} noise", name_of(noise)),
            .summary = Summary::rate,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const auto pilot = static_cast<std::size_t>(std::pow(static_cast<double>(place.size), 1 / 2.01));
                // One spike, or as a control more spikes than the pilot rank leaves out, all well separated.
                std::vector<double> thresholds{2.5};
                if (place.control_is("too-many"))
                    for (std::size_t i = 0; i <= pilot; ++i)
                        thresholds.push_back(2.5 + 0.5 * static_cast<double>(i + 1));
                const double lasting = 0.5 * place.fault_of("lasting");
                return [=, fixture = make_fixture({noise, 1.0, thresholds}, place.size)](std::uint64_t replicate) {
                    estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
                    const auto found = estimators::eoptshrink(block.singular_values(), block.shape());
                    return found.bulk_edge->value / fixture.law->bulk_edge().value - 1.0 - lasting;
                };
            },
            .region = [](std::size_t) { return at_most(-0.4, 0.1); },
            .quick = {{32, 1250}, {64, 1000}, {128, 600}},
            .full = {{64, 700}, {128, 500}, {256, 250}, {512, 85}},
            .negative_controls = {{"too-many", "k + 2 spikes, where the rule leaves room for k"},
                                  linear({"lasting", "an edge lower by half the true one at every size",
                                          FaultSize{0.5, "of the true edge, at every size", 0.0,
                                                    "an edge {} % too low at every size"}})}};
}

/// The eigenvalues of the noise law that eOptShrink fits with known rank, with or without imputed ones; with the
/// control `spike-kept` all eigenvalues of the block.
std::vector<double> fitted_noise(estimators::AnalysedBlock& block, const TrialPlace& place,
                                 estimators::Imputation imputation) {
    const auto& values = block.singular_values();
    if (place.control_is("spike-kept")) {
        std::vector<double> all;
        for (const double value : values) all.push_back(value * value);
        return all;
    }
    estimators::EOptShrinkOptions options;
    options.rank = 1;
    options.imputation = imputation;
    return estimators::eoptshrink(values, block.shape(), options).noise_eigenvalues;
}

const FixtureShape noise_law_shape{Noise::coloured, 1.0, {2.0}};

/// The Kolmogorov distance of the fitted noise law from the true one.
Trial noise_law_trial(const TrialPlace& place) {
    const Fixture fixture = make_fixture(noise_law_shape, place.size);
    const auto imputation =
        place.control_is("not-imputed") ? estimators::Imputation::none : estimators::EOptShrinkOptions{}.imputation;
    const auto bulk = std::make_shared<theory::BulkDistribution>(*fixture.law);
    return [=](std::uint64_t replicate) {
        estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
        return distance_interval(
                   fitted_noise(block, place, imputation), [&](double x) { return bulk->cdf({x}); }, 0.5)
            .estimate;
    };
}

/// The relative error of the Stieltjes transform of these eigenvalues at the outlier of the fixture.
double transform_error(const Fixture& fixture, estimators::Shape shape, const std::vector<double>& noise) {
    const Eigenvalue at = fixture.spike(0).outlier;
    return estimators::transforms_at(estimators::EmpiricalLaw(noise, shape), at).stieltjes_short /
               fixture.law->stieltjes_left(at) -
           1.0;
}

Trial transform_trial(const TrialPlace& place) {
    const Fixture fixture = make_fixture(noise_law_shape, place.size);
    const double scale = 1.0 - 0.5 * place.fault_of("scale");
    return [=](std::uint64_t replicate) {
        estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
        auto noise = fitted_noise(block, place, estimators::EOptShrinkOptions{}.imputation);
        for (double& value : noise) value *= scale;
        return transform_error(fixture, block.shape(), noise);
    };
}

/// The squared error of the transform with imputed eigenvalues less that without, over their sum: 1/2 where imputation
/// multiplies the squared error by three. The control `spike-kept` counts the spike as noise in place of imputing
/// nothing.
Trial imputation_trial(const TrialPlace& place) {
    const Fixture fixture = make_fixture(noise_law_shape, place.size);
    return [=](std::uint64_t replicate) {
        estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
        const TrialPlace sound{place.size, "", place.seed, place.cell};
        const auto square = [&](const TrialPlace& with, estimators::Imputation imputation) {
            return std::pow(transform_error(fixture, block.shape(), fitted_noise(block, with, imputation)), 2);
        };
        const double imputed = square(sound, estimators::EOptShrinkOptions{}.imputation);
        const double plain = square(place, estimators::Imputation::none);
        return (imputed - plain) / (imputed + plain);
    };
}

}  // namespace

std::vector<Claim> shrinkage_claims() {
    using theory::Loss;
    return {
        shrinker(Loss::frobenius),
        shrinker(Loss::operator_norm),
        shrinker(Loss::nuclear),
        {.id = "edge.estimator",
         .place = "paper, Algorithm 2, Step 1",
         .statement = "the bulk edge extrapolated from eigenvalues k + 1 and 2k + 1 approaches the edge",
         .plain = {"The estimated edge of the noise approaches the true one.", "exponent of its error",
                   "rate-coloured"},
         .corrected = "",
         .note =
             "the rate holds while the level is large: under coloured noise the edge is 22 % too low at d = 128 and "
             "9.5 % at d = 512",
         .criteria = {edge_rate(Noise::white), edge_rate(Noise::coloured)}},
        {.id = "noise-law",
         .place = "paper, Section 2.3, estimated noise distribution",
         .statement = "the distribution with imputed eigenvalues is that of the noise",
         .plain = {"The noise spectrum that the method fits is the true one.", "exponent of the distance",
                   "distribution"},
         .corrected = "its Stieltjes transform at an outlier, which is what is used of it, is that of the noise within "
                      "d^-1/2. So is that of the eigenvalues behind the outlier alone, with a smaller error: the "
                      "imputation of Step 2 buys next to nothing",
         .expected_verdict = PrintedVerdict::vacuous,
         .note = "imputation multiplies the error of the transform by 3.3 at 1.5, 2 and 4 thresholds (coloured noise, "
                 "d = 128; .0057 against .0017 at 2; white noise: by 1.4 to 1.7). The root mean square error of the "
                 "shrunk value is .085 with it and .070 without at 1.5 thresholds, .034 and .031 at 2, .012 at 4; at "
                 "1.2, where it is largest, .34 and .27. Only strengths at 1.2 thresholds gain: .069 against .071, and "
                 ".049 against .059 at d = 256",
         .criteria = {{.form = Form::printed,
                       .name = "distribution",
                       .measures = "Kolmogorov distance of the fitted distribution from the law, one spike at 2 "
                                   "thresholds, coloured noise",
                       .summary = Summary::rate,
                       .prepare = noise_law_trial,
                       .region = [](std::size_t) { return at_most(-0.5, 0.15); },
                       .quick = {{32, 200}, {64, 130}, {128, 65}},
                       .full = {{64, 130}, {128, 65}, {256, 33}},
                       .negative_controls = {{"not-imputed", "nothing imputed"},
                                             {"spike-kept", "nothing imputed, the spike counted as noise"}}},
                      {.form = Form::corrected,
                       .name = "transform",
                       .measures = "relative error of the fitted Stieltjes transform at theta(d), one spike at 2 "
                                   "thresholds, coloured noise",
                       .summary = Summary::rate,
                       .prepare = transform_trial,
                       .region = [](std::size_t) { return at_most(-0.5, 0.15); },
                       .quick = {{32, 2000}, {64, 1500}, {128, 750}},
                       .full = {{64, 1500}, {128, 1000}, {256, 500}, {512, 150}},
                       .negative_controls = {{"scale", "noise eigenvalues half as large",
                                              FaultSize{0.5, "of the noise eigenvalues, too small", 0.0,
                                                        "noise eigenvalues {} % too small"}}}},
                      {.form = Form::corrected,
                       .name = "imputation",
                       .measures = "squared error of that transform with imputed eigenvalues, less that without, over "
                                   "their sum, one spike at 2 thresholds, coloured noise",
                       .summary = Summary::mean,
                       .prepare = imputation_trial,
                       .region = [](std::size_t) { return at_least(0.5, 0.1); },
                       .quick = {{128, 400}},
                       .full = {{64, 2000}, {128, 1000}, {256, 400}},
                       .negative_controls = {{"spike-kept", "compared with the law that counts the spike as noise"}}}}},
    };
}

}  // namespace spiked::validation
