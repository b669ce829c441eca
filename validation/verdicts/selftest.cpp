#include "validation/verdicts/selftest.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/statistics/paired.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {
namespace {

using Uniforms = std::vector<double>;

/// The random numbers of one replicate of one calibration.
class Draws {
public:
    Draws(const stream::StudySeed& seed, const std::string& cell, std::uint64_t replicate)
        : seed_(seed),
          cell_("selftest " + cell),
          replicate_(replicate),
          stream_(seed, cell_, stream::Role::noise, replicate) {}

    [[nodiscard]] std::vector<double> normals(std::size_t count) const {
        std::vector<double> values(count);
        stream::fill_normal(stream_, values);
        return values;
    }
    /// Uniform in (0, 1), number `at` of the replicate; independent of the normals.
    [[nodiscard]] double uniform(std::uint32_t at) const {
        const auto words = stream_.words((1U << 31) + at);
        const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 12;
        return (static_cast<double>(bits) + 0.5) * 0x1p-52;
    }

    [[nodiscard]] sim::SpikedSample spiked_sample() const {
        const sim::SpikedModel model{
            .row = sim::Covariance::identity(3), .column = sim::Covariance::identity(3), .strengths = {{1.0}}};
        return sim::sample(model, seed_, cell_, replicate_);
    }

private:
    stream::StudySeed seed_;
    std::string cell_;
    std::uint64_t replicate_;
    stream::Stream stream_;
};

/// A calibration yields one number per replicate; with `defective` it is computed by a version with a planted defect.
struct Calibration {
    std::string name;
    std::string measures;
    std::string control;
    std::size_t replicates;
    /// The stated miss rate of an interval; 0 where the numbers are p-values.
    double stated_miss_rate;
    /// A p-value, uniform where the test keeps its level; or 1 where the interval misses the truth, otherwise 0.
    std::function<double(const Draws&, bool defective)> number;
    bool conservative = false;  ///< the interval may miss less often than stated
};

bool misses(const Interval& interval, double truth) { return truth < interval.low || truth > interval.high; }

constexpr double miss_fraction = 0.05;
constexpr std::size_t sample = 12;

/// The 95 % interval without the correction for skewness, whose misses are exact for normal values.
Interval students_interval(const std::vector<double>& values) {
    Moments moments;
    for (const double value : values) moments.add(value);
    return mean_interval(moments.mean, moments.standard_error(), moments.count, miss_fraction);
}

const std::vector<Calibration>& calibrations() {
    static const std::vector<Calibration> list = {
        {"student", "p-values of the mean of 12 normal values", "the normal law in place of Student's", 20000, 0.0,
         [](const Draws& draws, bool defective) {
             Moments moments;
             for (const double value : draws.normals(sample)) moments.add(value);
             return student_p_value(moments.mean / moments.standard_error(),
                                    defective ? 1e9 : static_cast<double>(moments.count - 1));
         }},
        {"clusters", "p-values of the difference of two means over 12 clusters of two equal blocks",
         "blocks taken for clusters", 20000, 0.0,
         [](const Draws& draws, bool defective) {
             const auto values = draws.normals(2 * sample);
             Parts a;
             Parts b;
             for (std::size_t i = 0; i < 2 * sample; ++i) {
                 const auto part = static_cast<std::int64_t>(defective ? i : i / 2);
                 for (auto* parts : {&a, &b}) {
                     Parts::Sum& sum = parts->sums[part];
                     sum.count += 1.0;
                     sum.sum += values[i / 2 + (parts == &a ? 0 : sample)];
                 }
             }
             const PartEstimate difference = paired_difference(a, b);
             return student_p_value(difference.value / difference.error(), difference.degrees);
         }},
        {"binomial", "randomised two-sided p-values of 40 trials of probability .3", "probability .36 assumed", 20000,
         0.0,
         [](const Draws& draws, bool defective) {
             std::uint64_t successes = 0;
             for (std::uint32_t i = 0; i < 40; ++i) successes += draws.uniform(i) < 0.3 ? 1 : 0;
             return binomial_p_value(successes, 40, defective ? 0.36 : 0.3, draws.uniform(40));
         }},
        {"kolmogorov", "fraction of p-values below .05 of 100 uniform values, tested by their distance from the law",
         "the law shifted by .05", 8000, miss_fraction,
         [](const Draws& draws, bool defective) {
             std::vector<double> values;
             for (std::uint32_t i = 0; i < 100; ++i) values.push_back(draws.uniform(i));
             const double shift = defective ? 0.05 : 0.0;
             const auto cdf = [&](double x) { return std::clamp(x + shift, 0.0, 1.0); };
             const double distance = distance_interval(values, cdf, 0.5).estimate;
             return kolmogorov_p_value(distance, values.size()) < miss_fraction ? 1.0 : 0.0;
         }},
        {"mean-interval", "misses of 95 % intervals for the mean of 12 normal values, Student's limits",
         "values shifted by .3 of their standard deviation", 20000, miss_fraction,
         [](const Draws& draws, bool defective) {
             return misses(students_interval(draws.normals(sample)), defective ? 0.3 : 0.0) ? 1.0 : 0.0;
         }},
        {"skewed-mean", "misses of 99.9 % intervals for the mean of 200 squared normal values", "Student's limits",
         20000, 0.001,
         [](const Draws& draws, bool defective) {
             Moments moments;
             for (const double value : draws.normals(200)) moments.add(value * value);
             const Interval interval = defective
                                           ? mean_interval(moments.mean, moments.standard_error(), moments.count, 0.001)
                                           : mean_interval(moments, 0.001);
             return misses(interval, 1.0) ? 1.0 : 0.0;
         },
         true},
        {"rate-interval", "misses of 95 % intervals for the slope of three sizes of 400 values each, true slope -1/2",
         "a truth of -.6", 4000, miss_fraction,
         [](const Draws& draws, bool defective) {
             std::vector<SizeDraws> sweep;
             const auto values = draws.normals(1200);
             for (std::size_t i = 0; i < 3; ++i) {
                 SizeDraws at{std::size_t{64} << i, {values.begin() + 400 * i, values.begin() + 400 * (i + 1)}};
                 for (double& value : at.values) value /= std::sqrt(static_cast<double>(at.size));
                 sweep.push_back(std::move(at));
             }
             return misses(rate_interval(sweep, miss_fraction), defective ? -0.6 : -0.5) ? 1.0 : 0.0;
         },
         true},
        {"equivalence", "rejections at 5 % of a truth on the margin, mean of 12 normal values",
         "a truth beyond it by one standard deviation", 20000, miss_fraction / 2.0,
         [](const Draws& draws, bool defective) {
             auto values = draws.normals(sample);
             for (double& value : values) value += defective ? 2.0 : 1.0;
             return judge(students_interval(values), around(0.0, 1.0)) == Verdict::fail ? 1.0 : 0.0;
         }},
        {"signal-vectors", "p-values of <u, v> for the left and right vector of one 3 x 3 sample",
         "one stream for both", 20000, 0.0,
         [](const Draws& draws, bool defective) {
             // The inner product of two random directions in R^3 is uniform in (-1, 1).
             const auto sample_of = draws.spiked_sample();
             const auto& other = defective ? sample_of.left : sample_of.right;
             return std::min(1.0, 0.5 * (1.0 + arma::dot(sample_of.left.col(0), other.col(0))));
         }},
    };
    return list;
}

double p_value_of(const Calibration& calibration, const Uniforms& numbers, double u) {
    if (calibration.stated_miss_rate > 0.0) {
        const auto missed = static_cast<std::uint64_t>(std::count(numbers.begin(), numbers.end(), 1.0));
        const double expected = calibration.stated_miss_rate * static_cast<double>(numbers.size());
        if (calibration.conservative && static_cast<double>(missed) <= expected) return 1.0;
        return binomial_p_value(missed, numbers.size(), calibration.stated_miss_rate, u);
    }
    const Interval distance = distance_interval(
        numbers, [](double p) { return std::clamp(p, 0.0, 1.0); }, 0.5);
    return kolmogorov_p_value(distance.estimate, numbers.size());
}

CalibrationOutcome calibrate(const Calibration& calibration, const SelftestPlan& plan, double alpha) {
    Uniforms correct;
    Uniforms defective;
    for (std::uint64_t replicate = 0; replicate < calibration.replicates; ++replicate) {
        const Draws draws(plan.seed, calibration.name, replicate);
        correct.push_back(calibration.number(draws, false));
        defective.push_back(calibration.number(draws, true));
    }
    const double u = Draws(plan.seed, calibration.name + " tie", 0).uniform(0);
    CalibrationOutcome outcome{calibration.name,
                               calibration.measures,
                               p_value_of(calibration, correct, u),
                               false,
                               calibration.control,
                               p_value_of(calibration, defective, u),
                               false};
    outcome.passed = outcome.p_value >= alpha;
    outcome.control_rejected = outcome.control_p_value < alpha;
    return outcome;
}

}  // namespace

const std::vector<PlantedDefect>& planted_defects() {
    static const std::vector<PlantedDefect> list = {
        {"sigma off by 2 %", "outlier.location", "scale", "scale"},
        {"A and B swapped", "outlier.location", "level-columns", "covariances-swapped"},
        {"n and d swapped", "outlier.location", "level-coloured", "sides-swapped"},
        {"eigenvalues squared again", "outlier.location", "level-coloured", "squared-again"},
        {"variance 1/n", "outlier.location", "level-coloured", "variance-1/n"},
        {"white law under coloured noise", "outlier.location", "level-coloured", "white-law"},
        {"detection threshold 20 % too small", "threshold.detection", "above", "small"},
        {"detection threshold 60 % too large", "threshold.detection", "below", "large"},
        {"detection threshold of white noise", "threshold.detection", "above", "white-threshold"},
        {"detection threshold from weighted transforms", "threshold.detection", "below", "weighted"},
        {"left and right overlaps exchanged", "overlap.left", "level-coloured", "other-side"},
        {"rank off by one", "signal-error", "with-vectors", "rank-1"},
        {"rank rule without margin", "rank.false-alarm", "reference-white", "author"},
        {"rank from the median", "rank.false-alarm", "reference-white", "median"},
        {"more spikes than the rule can count", "rank.consistency", "visible", "masked"},
        {"singular values kept as they are", "shrinker.frobenius", "level-coloured", "truncated"},
        {"operator shrinker of square blocks", "shrinker.operator", "level-wide", "square-only"},
        {"nuclear shrinker by its absolute value", "shrinker.nuclear", "level-weak", "unclipped"},
        {"nuclear shrinker with another power", "shrinker.nuclear", "level-white", "power"},
        {"one transform for both sides", "shrinker.frobenius", "level-wide", "one-transform"},
        {"QJL constant off by sqrt(2)", "qjl.mean", "corrected", "constant"},
        {"QJL that contributes nothing", "qjl.mean", "corrected", "dead"},
        {"QJL too small by sqrt(d)", "qjl.mean", "corrected", "root-d"},
        {"norm of the residual not stored", "tq-prod.unbiased", "own-row", "norm-lost"},
        {"norms not stored", "lloyd-max.distortion", "corrected-gaussian-2", "norm-lost"},
        {"norms not counted", "bits.formula", "stored-prod", "norms-not-counted"},
        {"bound of TurboQuant miscopied", "lloyd-max.distortion", "printed-gaussian-4", "copied-bound"},
        {"codebook for 1/sqrt(2d)", "lloyd-max.distortion", "corrected-gaussian-2", "half-variance"},
        {"codebook of d = 512, not scaled", "lloyd-max.distortion", "corrected-gaussian-2", "unscaled"},
        {"cells decoded at their lower edge", "lloyd-max.distortion", "corrected-gaussian-2", "lower-edge"},
        {"Hadamard transform without signs", "lloyd-max.distortion", "corrected-one-hot-2", "no-signs"},
        {"middle of the support for the median", "noise.level", "median", "middle"},
        {"noise level with signals in the median", "noise.level", "many-signals", "median"},
        {"hard threshold with the short side", "hard-threshold", "known-level", "short-side"},
        {"hard threshold 10 % too large", "hard-threshold", "indifference", "larger"},
        {"factors not counted", "one-bit-saved", "explained-values", "factors-not-counted"},
        {"eigenvalue against the threshold of a value", "hard-threshold", "known-level", "eigenvalue"},
        {"cells of equal probability", "lloyd-max.distortion", "corrected-gaussian-2", "equal-cells"},
        {"codebook of another dimension", "lloyd-max.distortion", "corrected-gaussian-2", "other-dimension"},
        {"another rotation undone", "lloyd-max.distortion", "corrected-gaussian-2", "wrong-inverse"},
        {"one seed for data and rotation", "lloyd-max.distortion", "corrected-gaussian-2", "shared-seed"},
        {"Hadamard rotation of one round", "lloyd-max.distortion", "corrected-one-hot-2", "one-round"},
        {"rows that are not rotated", "sphere.marginal", "one-hot", "no-rotation"},
        {"residual before the factors are coded", "one-bit-saved", "explained-keys", "open-loop"},
    };
    return list;
}

std::size_t Selftest::caught() const {
    return static_cast<std::size_t>(
        std::count_if(defects.begin(), defects.end(), [](const DefectOutcome& one) { return one.caught; }));
}

bool Selftest::passed() const {
    return caught() == defects.size() &&
           std::all_of(calibrations.begin(), calibrations.end(),
                       [](const CalibrationOutcome& one) { return one.passed && one.control_rejected; });
}

namespace {

/// The claims with the criteria in which defects are planted, and of their controls those that plant them.
std::vector<Claim> claims_with(const std::vector<PlantedDefect>& defects) {
    std::vector<Claim> chosen;
    for (const PlantedDefect& defect : defects) {
        const Claim* claim = find_claim(defect.claim);
        const auto named = [](const std::string& name) {
            return [&name](const auto& one) { return one.name == name; };
        };
        const auto criterion =
            claim == nullptr ? std::vector<Criterion>::const_iterator{}
                             : std::find_if(claim->criteria.begin(), claim->criteria.end(), named(defect.criterion));
        if (claim == nullptr || criterion == claim->criteria.end())
            throw data_error("the defect \"{}\" names no criterion ({}, {})", defect.name, defect.claim,
                             defect.criterion);
        auto of = std::find_if(chosen.begin(), chosen.end(), [&](const Claim& one) { return one.id == defect.claim; });
        if (of == chosen.end()) {
            chosen.push_back(*claim);
            chosen.back().criteria.clear();
            of = chosen.end() - 1;
        }
        auto kept = std::find_if(of->criteria.begin(), of->criteria.end(), named(defect.criterion));
        if (kept == of->criteria.end()) {
            of->criteria.push_back(*criterion);
            of->criteria.back().negative_controls.clear();
            of->criteria.back().positive_controls.clear();
            kept = of->criteria.end() - 1;
        }
        const auto& all = criterion->negative_controls;
        const auto control = std::find_if(all.begin(), all.end(), named(defect.control));
        kept->negative_controls.push_back(control == all.end() ? Control{defect.control, ""} : *control);
    }
    return chosen;
}

}  // namespace

Selftest run_selftest(const SelftestPlan& plan) {
    Selftest result;
    const std::size_t parts = plan.defects.size() + calibrations().size();
    const double alpha = plan.false_alarm / static_cast<double>(parts);
    const auto claims = claims_with(plan.defects);
    const auto judged = judge_once({.seed = plan.seed,
                                    .false_alarm = alpha,
                                    .threads = plan.threads,
                                    .progress =
                                        [&](std::size_t done, std::size_t of) {
                                            if (plan.progress) plan.progress(done * plan.defects.size() / of, parts);
                                        }},
                                   claims);
    for (const auto& defect : plan.defects) {
        auto one = judged.begin();  // in the order of the criteria
        for (const Claim& claim : claims)
            for (const Criterion& criterion : claim.criteria) {
                if (claim.id == defect.claim && criterion.name == defect.criterion) {
                    const bool sound = one->outcome.verdict != Verdict::fail;
                    const auto control = std::find_if(
                        one->controls.begin(), one->controls.end(),
                        [&](const ControlOutcome& each) { return each.definition.name == defect.control; });
                    result.defects.push_back({defect, control->fails() && sound, sound, control->outcome.deciding()});
                }
                ++one;
            }
    }
    std::size_t done = plan.defects.size();
    for (const auto& calibration : calibrations()) {
        result.calibrations.push_back(calibrate(calibration, plan, alpha));
        if (plan.progress) plan.progress(++done, parts);
    }
    return result;
}

}  // namespace spiked::validation
