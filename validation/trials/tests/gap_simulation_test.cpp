#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "theory/laws/support_gaps.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/study/study.hpp"

// Outliers in gaps of the bulk, below the threshold of the top edge: the predictions of SupportGaps are compared with
// plain simulation. The means over replicates of the outlier and of both squared overlaps must agree with them, and
// wrong predictions must be rejected by the same rule.
namespace spiked::validation {
namespace {

constexpr std::array gap_statistics = {"outlier", "left overlap", "right overlap"};
using GapValues = std::array<double, gap_statistics.size()>;

/// A law with a gap, and one spike with an outlier in it and none above the top edge.
struct GapSetting {
    const char* name;
    std::size_t rows;
    std::size_t columns;
    theory::Spectrum row;
    theory::Spectrum column;
    double strength;
    std::uint64_t replicates;
    /// The law is the limit of large blocks. At finite size it may be off by this over min(n, d), relative for the
    /// outlier, absolute for overlaps. Calibrated with 2000 and 3000 replicates of another seed (...a1ca): the largest
    /// biases were, in these units, 0.3 for the outlier and 0.3 for overlaps, and no larger in blocks of twice the
    /// size.
    GapValues margin;
};
void PrintTo(const GapSetting& setting, std::ostream* out) { *out << setting.name; }

std::vector<GapSetting> gap_settings() {
    return {
        {"AuditsLaw",
         100,
         1000,
         theory::two_atom_spectrum(1.0, 25.0, 0.5),
         theory::identity_spectrum(),
         1.67,
         200,
         {0.5, 0.6, 0.6}},
        {"AtomsOfBothSidesAboveTheGap",
         200,
         400,
         theory::two_atom_spectrum(1.0, 100.0, 0.05),
         theory::two_atom_spectrum(1.0, 100.0, 0.02),
         1.4,
         150,
         {0.5, 0.6, 0.6}},
        {"ZeroRows",
         120,
         240,
         theory::two_atom_spectrum(0.0, 1.0, 0.5),
         theory::identity_spectrum(),
         0.5,
         200,
         {0.5, 0.6, 0.6}},
    };
}

/// The false-alarm rate declared for the thirteen comparisons of this file, divided evenly among them; nominal.
constexpr double gap_false_alarm = 1e-3;
constexpr double gap_comparisons = 13.0;

class GapSimulationLaw : public testing::TestWithParam<GapSetting> {
protected:
    const GapSetting& at_ = GetParam();
    const theory::SeparableLaw law_{at_.row, at_.column, AspectRatio::of(at_.rows, at_.columns)};
    const theory::SupportGaps outside_{law_};
    const std::size_t gap_ = theory::all_outliers(law_.spike({at_.strength}), outside_).front().gap.value();
    std::array<std::vector<double>, gap_statistics.size()> measured_;
    std::vector<double> of_noise_;  ///< the eigenvalue of the noise alone with the number of the outlier

    [[nodiscard]] const theory::SupportGap& gap() const { return outside_.gaps()[gap_]; }
    [[nodiscard]] GapValues predict(double strength) const {
        const auto spike = outside_.spike(gap_, {strength});
        if (!spike) return {std::nan(""), std::nan(""), std::nan("")};
        return {spike->outlier.value, spike->overlap_left.value, spike->overlap_right.value};
    }

    void simulate() {
        const auto seed = stream::StudySeed::parse("0x5eed000000000000000000000000a1a1");
        const sim::SpikedModel model{sim::Covariance::diagonal(sim::expand(at_.row, at_.rows)),
                                     sim::Covariance::diagonal(sim::expand(at_.column, at_.columns)),
                                     {{at_.strength}}};
        // The outlier comes from the component below the gap, so that as many eigenvalues are above it as above the
        // gap.
        const auto above = static_cast<arma::uword>(std::lround(gap().mass_above * static_cast<double>(at_.rows)));
        const arma::uword index = at_.rows - 1 - above;
        for (std::uint64_t r = 0; r < at_.replicates; ++r) {
            const sim::SpikedSample sample = sim::sample(model, seed, at_.name, r);
            arma::vec eigenvalues;
            arma::mat vectors;
            ASSERT_TRUE(arma::eig_sym(eigenvalues, vectors, sample.observed * sample.observed.t()));
            const arma::vec left = vectors.col(index);
            const arma::vec right = arma::normalise(arma::vec(sample.observed.t() * left));
            measured_[0].push_back(eigenvalues(index));
            measured_[1].push_back(std::pow(arma::dot(left, sample.left.col(0)), 2));
            measured_[2].push_back(std::pow(arma::dot(right, sample.right.col(0)), 2));
            ASSERT_TRUE(arma::eig_sym(eigenvalues, sample.noise * sample.noise.t()));
            of_noise_.push_back(eigenvalues(index));
        }
    }

    /// The decision rule for the law and for the controls: fail rejects `expected`.
    [[nodiscard]] Verdict judged(const std::vector<double>& values, std::size_t k, double expected) const {
        return judge(mean_interval(values, gap_false_alarm / gap_comparisons), region(k, expected));
    }
    [[nodiscard]] AcceptanceRegion region(std::size_t k, double expected) const {
        return around(expected, at_.margin[k] * (k == 0 ? expected : 1.0) / static_cast<double>(at_.rows));
    }
    [[nodiscard]] std::string describe(std::size_t k, double expected) const {
        const Interval found = mean_interval(measured_[k], gap_false_alarm / gap_comparisons);
        return fmt::format("{}: {:.4f} +- {:.4f}, expected {:.4f}; a deviation of {:.4f} would be detected",
                           gap_statistics[k], found.estimate, found.error, expected,
                           smallest_detectable(found, region(k, expected)));
    }
};

TEST_P(GapSimulationLaw, HoldsAndWrongPredictionsAreRejected) {
    ASSERT_LT(at_.strength, law_.detection_threshold().value) << "nothing is predicted above the top edge";
    ASSERT_NO_FATAL_FAILURE(simulate());
    const GapValues expected = predict(at_.strength);
    for (std::size_t k = 0; k < gap_statistics.size(); ++k) {
        std::cout << describe(k, expected[k]) << "\n";
        EXPECT_NE(judged(measured_[k], k, expected[k]), Verdict::fail) << describe(k, expected[k]);
        // Control: nothing is there. The eigenvalue is then at the end of the component below, and overlaps are 0.
        EXPECT_EQ(judged(measured_[k], k, k == 0 ? gap().lower.value : 0.0), Verdict::fail) << describe(k, 0.0);
    }
    // The deviation of the outlier: the sample variance over the predicted one is chi-squared over its degrees of
    // freedom, up to the skewness of the outlier. Controls: half and twice the deviation.
    const SignalStrength strengths[] = {{at_.strength}};
    const auto outliers = theory::gap_outliers(law_, outside_, strengths, at_.rows, at_.columns);
    ASSERT_EQ(outliers.size(), 1U);
    EXPECT_TRUE(outliers.front().separate);
    Moments outlier;
    for (const double value : measured_[0]) outlier.add(value);
    const double degrees = static_cast<double>(outlier.count - 1);
    const double ratio = std::sqrt(outlier.m2 / degrees) / outliers.front().deviation;
    std::cout << fmt::format("deviation of the outlier over the predicted one: {:.3f} +- {:.3f}\n", ratio,
                             std::sqrt(0.5 / degrees));
    EXPECT_NEAR(ratio, 1.0, 0.25);
    // Control: a strength that is 10 % off.
    for (const double factor : {0.9, 1.1})
        EXPECT_EQ(judged(measured_[0], 0, predict(factor * at_.strength)[0]), Verdict::fail)
            << factor << ": " << describe(0, predict(factor * at_.strength)[0]);
    // Control: noise alone has no eigenvalue in the middle half of the gap, and does not agree with the prediction.
    const double width = gap().upper.value - gap().lower.value;
    for (const double value : of_noise_)
        EXPECT_FALSE(value > gap().lower.value + 0.25 * width && value < gap().upper.value - 0.25 * width) << value;
    // A row without noise has eigenvalue 0 in every sample: nothing random is left in it.
    const double alpha = gap_false_alarm / gap_comparisons;
    const auto ends = std::minmax_element(of_noise_.begin(), of_noise_.end());
    const Interval found = *ends.second - *ends.first < 1e-12
                               ? equal_values_interval(*ends.first, of_noise_.size(), 0.0, alpha)
                               : mean_interval(of_noise_, alpha);
    EXPECT_EQ(judge(found, region(0, expected[0])), Verdict::fail);
}

/// The law of AuditsLaw.
theory::SeparableLaw law_of_audit() {
    return {theory::two_atom_spectrum(1.0, 25.0, 0.5), theory::identity_spectrum(), AspectRatio(0.1)};
}

/// The squared overlaps of the observed left vector of the largest eigenvalue with the true one of the weaker of two
/// spikes, the stronger of which, 3.6, has the outlier above the top edge.
std::vector<double> exchanged_with(double weaker, std::size_t rows, std::uint64_t replicates) {
    const auto seed = stream::StudySeed::parse("0x5eed000000000000000000000000a1a3");
    const theory::SeparableLaw law = law_of_audit();
    const sim::SpikedModel model{sim::Covariance::diagonal(sim::expand(law.row(), rows)),
                                 sim::Covariance::diagonal(sim::expand(law.column(), 10 * rows)),
                                 {{3.6}, {weaker}}};
    std::vector<double> found;
    for (std::uint64_t r = 0; r < replicates; ++r) {
        const sim::SpikedSample sample = sim::sample(model, seed, fmt::format("{} beside {}", rows, weaker), r);
        arma::vec eigenvalues;
        arma::mat vectors;
        EXPECT_TRUE(arma::eig_sym(eigenvalues, vectors, sample.observed * sample.observed.t()));
        found.push_back(std::pow(arma::dot(vectors.tail_cols(1), sample.left.col(1)), 2));
    }
    return found;
}

/// The mean of these overlaps to first order in 1/rows. With w_i = strength_i (<v_i, v>, <u_i, u>) for the found
/// vectors u, v of the outlier z, the two pairs solve (M + F) w = 0. M has the blocks (s m1, 1/strength_i;
/// 1/strength_i, s m2), s^2 = z; F couples the pairs by forms of the resolvents, s u_1^T G1 u_2, u_1^T G1 Z v_2 and s
/// v_1^T G2 v_2, with the variances z (m1' - m1^2)/n, (m1 + z m1')/d and z (m2' - m2^2)/d.
double first_order_exchange(double stronger, double weaker, std::size_t rows) {
    const theory::SeparableLaw law = law_of_audit();
    const theory::SpikePrediction at = law.spike({stronger});
    const theory::SpikePrediction low = law.spike({stronger * (1.0 - 1e-4)});
    const theory::SpikePrediction high = law.spike({stronger * (1.0 + 1e-4)});
    const double n = static_cast<double>(rows);
    const double d = 10.0 * n;
    const double z = at.outlier.value;
    const double m1 = at.stieltjes_left;
    const double m2 = at.stieltjes_right;
    const double step = high.outlier.value - low.outlier.value;
    const double slope1 = (high.stieltjes_left - low.stieltjes_left) / step;
    const double slope2 = (high.stieltjes_right - low.stieltjes_right) / step;
    const double left = z * (slope1 - m1 * m1) / n;
    const double across = (m1 + z * slope1) / d;
    const double right = z * (slope2 - m2 * m2) / d;
    const double inverse = 1.0 / (weaker * weaker);
    const double a1 = at.overlap_left.value;
    const double a2 = at.overlap_right.value;
    const double of_pair = inverse * (left * a2 + across * a1) + z * m1 * m1 * (across * a2 + right * a1);
    return stronger * stronger * inverse * of_pair / std::pow(1.0 / (stronger * stronger) - inverse, 2);
}

// The outlier of 1.67 is far below that of 3.6, in the gap. The vector above the edge has no more of the weaker true
// vector than first order says, which is little, and falls like 1/rows. Plain simulations with other random
// numbers gave 1.03(3) times it at 50 rows and 1.03(4) times at 100. Control: a spike of 2.4, also in the gap, takes
// more than twice as much.
TEST(GapNeighbourLaw, ASpikeInTheGapTakesFromTheVectorAboveTheTopEdgeWhatFirstOrderSays) {
    const double alpha = gap_false_alarm / gap_comparisons;
    for (const auto& [rows, margin] : {std::pair<std::size_t, double>{50, 0.4}, {100, 0.4}}) {
        const double expected = first_order_exchange(3.6, 1.67, rows);
        for (const auto& [weaker, fails] : {std::pair{1.67, false}, {2.4, true}}) {
            const Interval found = mean_interval(exchanged_with(weaker, rows, 900), alpha);
            std::cout << fmt::format("{} rows, beside {}: {:.4f} +- {:.4f}, first order {:.4f}\n", rows, weaker,
                                     found.estimate, found.error, first_order_exchange(3.6, weaker, rows));
            EXPECT_EQ(judge(found, around(expected, margin * expected)), fails ? Verdict::fail : Verdict::pass)
                << rows << " rows, beside " << weaker;
        }
    }
}

/// Predictions of the study about gaps.
bool is_of_gap(const Prediction& prediction) { return prediction.metric.starts_with("gap_"); }

TEST(GapStudyLaw, TheStudyOfOutliersInGapsPassesAndLawsThatAreWrongByTwelvePercentFail) {
    const Experiment experiment = read_study(SPIKED_SOURCE_DIR "/validation/studies/gap-outliers.toml").experiment;
    ASSERT_EQ(experiment.notes.size(), 1U);
    const std::string path = scratch_path("gap-outliers.spiked");
    const auto found = judged_study(experiment, path);
    std::set<std::string> asked;
    for (const auto& [what, verdict] : found) {
        EXPECT_EQ(verdict, "pass") << what;
        asked.insert(what);
    }
    std::set<std::string> expected;
    for (const auto& [cell, k] : {std::pair{"[1.67]", 1}, {"[6, 1.67]", 2}})
        for (const char* metric : {"gap_outlier", "gap_overlap.left", "gap_overlap.right", "outlier"})
            expected.insert(fmt::format("signal.strength={} {} {}", cell, metric, k));
    for (const char* metric : {"outlier", "overlap.left", "overlap.right"})
        expected.insert(fmt::format("signal.strength=[6, 1.67] {} 1", metric));
    EXPECT_EQ(asked, expected);

    // Negative controls, on the replicates of the store: a law whose numbers in the gap are wrong by 12 %, and one for
    // which a spike below the top threshold is not seen at all.
    const auto all_fail = [&](const char* control, const auto& change) {
        Experiment wrong = experiment;
        for (auto& cell : wrong.cells) {
            std::erase_if(cell.predictions, [](const Prediction& one) { return !is_of_gap(one); });
            for (Prediction& prediction : cell.predictions) {
                change(prediction);
                prediction.with_fault = 100.0;  // its own control is not the question here
            }
        }
        const auto verdicts = judged_study(wrong, path);
        EXPECT_EQ(verdicts.size(), 6U);
        for (const auto& [what, verdict] : verdicts) EXPECT_EQ(verdict, "fail") << what << ", " << control;
    };
    for (const double factor : {0.88, 1.12})
        all_fail("wrong by 12 %", [&](Prediction& prediction) { prediction.value *= factor; });
    all_fail("not seen",
             [](Prediction& prediction) { prediction.value = prediction.metric == "gap_outlier" ? 1.433 : 0; });
}

TEST(GapStudyLaw, StaysOnTheCpuWhereAStudyMovesToADevice) {
    Experiment experiment =
        parse_study(
            "spiked = 1\n[study]\nname = \"x\"\n[model]\nkind = \"spiked\"\nn = 20\nd = 200\n"
            "noise = { row_cov = { kind = \"two-atom\", low = 1.0, high = 25.0, weight = 0.5 } }\n"
            "signal = { strength = [1.67], unit = \"absolute\" }\n[[estimator]]\nname = \"eoptshrink\"\n"
            "[run]\nreps = { min = 6 }\n",
            "x")
            .experiment;
    std::vector<std::string> notes;
    EXPECT_FALSE(experiment.move_to(spiked::cuda::choose_device("emulated"), 1, notes));
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_NE(notes.front().find("outliers in gaps of the noise"), std::string::npos) << notes.front();
}

INSTANTIATE_TEST_SUITE_P(Gaps, GapSimulationLaw, testing::ValuesIn(gap_settings()),
                         [](const auto& at) { return at.param.name; });

}  // namespace
}  // namespace spiked::validation
