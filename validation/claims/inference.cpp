#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "estimators/inference/spike_intervals.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "validation/claims/parts/fixture.hpp"

// Claims on how sure one matrix makes: intervals of a component, and the level of a rank rule.

namespace spiked::validation {
namespace {

/// Which interval of a component is judged, in which noise.
struct Coverage {
    std::string name;
    std::string estimator;
    Noise noise = Noise::white;
    bool of_overlap = false;
};

bool holds(const std::optional<estimators::Interval>& interval, double truth, double kept_width) {
    if (!interval) return false;
    const double middle = 0.5 * (interval->low + interval->high);
    return std::abs(truth - middle) <= kept_width * (interval->high - middle);
}

Criterion coverage(const Coverage& of) {
    return {.name = of.name,
            .measures = fmt::format("fraction of blocks whose 95 % interval holds {}, {}, one spike at 2.5 thresholds, "
                                    "{} noise, n/d = 1/2",
                                    of.of_overlap ? "the squared overlap of right vectors" : "the strength",
                                    of.estimator, name_of(of.noise)),
            .summary = Summary::share,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const double kept_width = 1.0 - 0.5 * place.fault_of("half");
                return [=, estimator = estimators::spectral_estimator(of.estimator),
                        fixture = make_fixture({of.noise, 0.5, {2.5}}, place.size)](std::uint64_t replicate) {
                    const DrawnBlock drawn = fixture.decomposed(place, replicate);
                    estimators::AnalysedBlock& block = drawn.block;
                    const auto found = estimator.of(block);
                    const auto intervals = estimators::spike_intervals(found, block.singular_values(), block.shape(),
                                                                       estimators::IntervalMethod::theory, 0.95);
                    if (!intervals || intervals->empty()) return 0.0;
                    if (!of.of_overlap)
                        return holds(intervals->front().strength, fixture.strength(0), kept_width) ? 1.0 : 0.0;
                    const double overlap = drawn.squared_overlap(sim::MatrixSide::column);
                    return holds(intervals->front().overlap_right, overlap, kept_width) ? 1.0 : 0.0;
                };
            },
            .region = [](std::size_t) { return at_least(0.95, 0.05); },
            .quick = {{128, 1000}},
            .full = {{128, 2000}, {256, 1000}},
            .negative_controls = {{"half", "intervals of half the width about their middle",
                                   FaultSize{0.5, "of the width, left out", 0.0, "intervals {} % narrower"}}}};
}

Criterion permutation_level() {
    return {.name = "permutations",
            .measures =
                "fraction of pure noise blocks in which svd:pa at level .05 counts nothing, columns of unequal "
                "variances (exp(-3 j/d)), not centred, n/d = 1/2",
            .summary = Summary::share,
            .prepare = [](const TrialPlace& place) -> Trial {
                const char* const rule = place.control_is("white-rule") ? "svd:kn:alpha=0.05" : "svd:pa:level=0.05";
                const Noise noise = place.control_is("rows") ? Noise::coloured : Noise::columns;
                return [=, estimator = estimators::spectral_estimator(rule),
                        fixture = make_fixture({noise, 0.5, {}}, place.size)](std::uint64_t replicate) {
                    return estimator.of(fixture.decomposed(place, replicate).block).rank == 0 ? 1.0 : 0.0;
                };
            },
            .region = [](std::size_t) { return around(0.95, 0.03); },
            .quick = {{64, 1500}},
            .full = {{64, 3000}, {128, 1500}},
            .negative_controls = {{"white-rule", "a test for white noise, kn"},
                                  {"rows", "rows of unequal variances too, which permuted columns do not keep"}}};
}

}  // namespace

std::vector<Claim> inference_claims() {
    return {
        {.id = "interval.coverage",
         .place = "ours, from the fluctuations of outliers and overlaps",
         .statement = "intervals of 95 % hold the strength of a component and the overlap of its vectors in 95 % of "
                      "matrices, within .05",
         .plain = {"The intervals hold what they state.", "fraction that holds the strength, coloured noise",
                   "strength-coloured"},
         .corrected = "",
         .note =
             "vectors in general position, entries Gaussian, a component well above the threshold; nearer to it, and "
             "for vectors on few rows or columns of other noise, less is covered (docs/METHODS.md)",
         .criteria = {coverage({"strength-white", "gd-shrink"}),
                      coverage({"strength-coloured", "eoptshrink", Noise::coloured}),
                      coverage({"overlap-white", "gd-shrink", Noise::white, true})}},
        {.id = "rank.level",
         .place = "Buja and Eyuboglu 1992; Dobriban and Owen 2019; ours for columns that are not centred",
         .statement =
             "parallel analysis by permutations counts a component in noise with the probability of its level, "
             "whatever the variances of the columns",
         .plain = {"Parallel analysis raises as many false alarms as it says.", "fraction of noise without a component",
                   "permutations"},
         .corrected = "",
         .criteria = {permutation_level()}}};
}

}  // namespace spiked::validation
