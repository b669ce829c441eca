#include "theory/laws/shrinkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimators/spectral/empirical_law.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "theory/laws/bulk_distribution.hpp"
#include "validation/claims/fixture.hpp"

// Claims on eOptShrink with known rank: shrunk values, bulk edge, noise law.

namespace spiked::validation {
namespace {

/// The shrunk value of one spike minus the optimal one, or their ratio minus 1, with known rank.
Trial shrinker_trial(const TrialPlace& place, const FixtureShape& shape, theory::Loss loss, bool relative) {
    const Fixture fixture = make_fixture(shape, place.size);
    double optimal = fixture.spike(0).shrunk(loss).value;
    if (place.control_is("white-law")) {
        const theory::SeparableLaw white(theory::identity_spectrum(), theory::identity_spectrum(),
                                         fixture.law->aspect());
        optimal = white.spike(fixture.model.strengths[0]).shrunk(loss).value;
    }
    const bool truncated = place.control_is("truncated");
    const bool square_only = place.control_is("square-only");
    const bool unclipped = place.control_is("unclipped");
    const bool one_transform = place.control_is("one-transform");
    const bool power = place.control_is("power");
    return [=](std::uint64_t replicate) {
        estimators::AnalysedBlock& block = analysed(fixture.draw(place, replicate).observed);
        const auto& values = block.singular_values();
        const auto found = shrink_at_rank(values, block.shape(), 1, loss);
        double value = truncated ? values[0] : found.shrunk[0];
        // Negative controls: errors of published programs, applied to the same estimates.
        const double a = found.overlap_left[0];
        const double b = found.overlap_right[0];
        if (square_only) value = found.strengths[0];
        if (unclipped) value = found.strengths[0] * std::abs(std::sqrt(a * b) - std::sqrt((1.0 - a) * (1.0 - b)));
        if (one_transform) {
            estimators::EmpiricalLaw law(found.noise_eigenvalues, block.shape());
            law.aspect = 1.0;
            const auto estimate = estimate_outlier(law, block.shape(), {values[0] * values[0]});
            value = estimate.strength * std::sqrt(estimate.overlap_left * estimate.overlap_right);
        }
        if (power) {
            const double x = found.strengths[0];
            value = (std::pow(values[0], 4) - 1.0 - x * values[0]) / (x * x * values[0]);
        }
        return relative ? value / optimal - 1.0 : value - optimal;
    };
}

Claim shrinker(theory::Loss loss) {
    const std::string name(theory::name_of(loss));
    const auto rate = [=](Noise noise, double thresholds, Control control) -> Criterion {
        return {.name = fmt::format("rate-{}", name_of(noise)),
                .measures = fmt::format("shrunk value minus the optimal one, {} loss, rank told, one spike at {} "
                                        "thresholds, {} noise",
                                        name, thresholds, name_of(noise)),
                .summary = Summary::rate,
                .prepare =
                    [=](const TrialPlace& place) {
                        return shrinker_trial(place, {noise, 1.0, {thresholds}}, loss, false);
                    },
                .region = [](std::size_t) { return at_most(-0.5, 0.15); },
                .quick = {{32, 4000}, {64, 3000}, {128, 1500}},
                .full = {{64, 6000}, {128, 4000}, {256, 2000}, {512, 600}},
                .negative_controls = {std::move(control)}};
    };
    const auto level = [=](std::string criterion_name, FixtureShape shape, bool relative, std::string setup,
                           double margin, std::vector<Control> negative_controls) -> Criterion {
        return {.name = std::move(criterion_name),
                .measures = fmt::format(
                    "{}, {} loss, rank told, {}",
                    relative ? "shrunk value over the optimal one minus 1" : "shrunk value minus the optimal one", name,
                    setup),
                .summary = Summary::mean,
                .prepare = [=](const TrialPlace& place) { return shrinker_trial(place, shape, loss, relative); },
                .region = [=](std::size_t size) { return around(0.0, margin_at(size, margin, 0.5)); },
                .quick = {{128, 800}},
                .full = {{128, 4000}, {256, 2000}, {512, 600}},
                .negative_controls = std::move(negative_controls)};
    };
    const Control truncated{"truncated", "observed values kept as they are"};
    Claim claim{.id = "shrinker." + name,
                .place = "paper, appendix, optimal shrinker convergence",
                .statement = fmt::format("given the rank, the shrunk values approach the optimal ones for the {} loss "
                                         "within d^-1/2",
                                         name),
                .criteria = {rate(Noise::white, 2.0, truncated),
                             rate(Noise::coloured, 1.5,
                                  loss == theory::Loss::operator_norm
                                      // The optimal value for white noise differs too little to serve as a control.
                                      ? truncated
                                      : Control{"white-law", "optimal value of white noise"}),
                             level("level-coloured", {Noise::coloured, 0.5, {2.0}}, true,
                                   "one spike at 2 thresholds, coloured noise, n/d = 0.5", 0.06, {truncated})}};
    if (loss != theory::Loss::nuclear)
        claim.criteria.push_back(
            level("level-wide", {Noise::white, 0.25, {1.8}}, true,
                  "one spike at 1.8 thresholds, white noise, n/d = 1/4", 0.06,
                  {loss == theory::Loss::operator_norm
                       ? Control{"square-only", "the formula of square blocks, the strength itself"}
                       : Control{"one-transform", "m2 = m1: the zero eigenvalues of the long side forgotten"}}));
    if (loss == theory::Loss::nuclear) {
        claim.criteria.push_back(level("level-weak", {Noise::white, 1.0, {1.1}}, false,
                                       "one spike at 1.1 thresholds, where the optimal one is 0, white noise", 0.1,
                                       {{"unclipped", "the absolute value of the formula, not cut off below 0"}}));
        claim.criteria.push_back(
            level("level-white", {Noise::white, 1.0, {2.0}}, true, "one spike at 2 thresholds, white noise", 0.06,
                  {{"power", "the fourth power of the observed value in place of the strength's"}}));
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
                return [=, fixture = make_fixture({noise, 1.0, thresholds}, place.size)](std::uint64_t replicate) {
                    estimators::AnalysedBlock& block = analysed(fixture.draw(place, replicate).observed);
                    const auto found = estimators::eoptshrink(block.singular_values(), block.shape());
                    return found.bulk_edge->value / fixture.law->bulk_edge().value - 1.0;
                };
            },
            .region = [](std::size_t) { return at_most(-0.4, 0.1); },
            .quick = {{32, 2500}, {64, 2000}, {128, 1200}},
            .full = {{64, 4000}, {128, 3000}, {256, 1500}, {512, 500}},
            .negative_controls = {{"too-many", "k + 2 spikes, where the rule leaves room for k"}}};
}

/// The error of the noise law that eOptShrink fits: its distribution, or its Stieltjes transform at the outlier.
Trial noise_law_trial(const TrialPlace& place, bool transform) {
    const Fixture fixture = make_fixture({Noise::coloured, 1.0, {2.0}}, place.size);
    const bool spike_kept = place.control_is("spike-kept");
    const double scale = place.control_is("scale") ? 0.5 : 1.0;
    const double at = fixture.spike(0).outlier.value;
    const double exact = fixture.law->stieltjes_left({at});
    const auto bulk = std::make_shared<theory::BulkDistribution>(*fixture.law);
    return [=](std::uint64_t replicate) {
        estimators::AnalysedBlock& block = analysed(fixture.draw(place, replicate).observed);
        const auto& values = block.singular_values();
        auto noise = shrink_at_rank(values, block.shape(), 1).noise_eigenvalues;
        if (spike_kept) {
            noise.clear();
            for (const double value : values) noise.push_back(value * value);
        }
        for (double& value : noise) value *= scale;
        if (transform) {
            const auto found = estimators::transforms_at(estimators::EmpiricalLaw(noise, block.shape()), {at});
            return found.stieltjes_short / exact - 1.0;
        }
        return distance_interval(
                   noise, [&](double x) { return bulk->cdf({x}); }, 0.5)
            .estimate;
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
         .corrected = "",
         .criteria = {edge_rate(Noise::white), edge_rate(Noise::coloured)}},
        {.id = "noise-law",
         .place = "paper, Section 2.3, estimated noise distribution",
         .statement = "the distribution with imputed eigenvalues is that of the noise",
         .corrected = "its Stieltjes transform at an outlier, which is what is used of it, is that of the noise "
                      "within d^-1/2",
         .expected_verdict = PrintedVerdict::vacuous,
         .criteria = {{.form = Form::printed,
                       .name = "distribution",
                       .measures = "Kolmogorov distance of the fitted distribution from the law, one spike at 2 "
                                   "thresholds, coloured noise",
                       .summary = Summary::rate,
                       .prepare = [](const TrialPlace& place) { return noise_law_trial(place, false); },
                       .region = [](std::size_t) { return at_most(-0.5, 0.15); },
                       .quick = {{32, 300}, {64, 200}, {128, 100}},
                       .full = {{64, 600}, {128, 300}, {256, 150}},
                       .negative_controls = {{"spike-kept", "nothing imputed, the spike counted as noise"}}},
                      {.form = Form::corrected,
                       .name = "transform",
                       .measures = "relative error of the fitted Stieltjes transform at theta(d), one spike at 2 "
                                   "thresholds, coloured noise",
                       .summary = Summary::rate,
                       .prepare = [](const TrialPlace& place) { return noise_law_trial(place, true); },
                       .region = [](std::size_t) { return at_most(-0.5, 0.15); },
                       .quick = {{32, 4000}, {64, 3000}, {128, 1500}},
                       .full = {{64, 6000}, {128, 4000}, {256, 2000}, {512, 600}},
                       .negative_controls = {{"scale", "noise eigenvalues half as large"}}}}},
    };
}

}  // namespace spiked::validation
