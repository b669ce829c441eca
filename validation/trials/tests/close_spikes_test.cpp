#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>
#include <string>

#include "core/device/device.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/statistics/verdict.hpp"
#include "validation/study/study.hpp"

// Spikes of almost equal strength: how much their vectors mix, and that checks judge what the law predicts about them.
namespace spiked::validation {
namespace {

constexpr double close_false_alarm = 1e-6;  // of each test; nominal, because the means are taken for normal

/// The mean fraction of the first true vector's plane that two observed vectors exchange, against 1/(2 s^2).
TEST(SpikeMixingLaw, TwoSpikesMixByHalfTheInverseSquareOfTheirDistance) {
    const stream::StudySeed seed = stream::StudySeed::parse("0x5eed00000000000000000000000317e5");
    const double s = theory::separation_of_spikes;
    /// The prediction is of first order. At s = 6 the share was 1.10 times it (+- .04) in white noise of 64 x 64, 1.08
    /// (+- .05) of 128 x 128, 1.01 (+- .12) of 256 x 256, and 1.16 (+- .06) in the coloured noise below, other seeds.
    constexpr double margin = 0.3;
    struct Setting {
        const char* name;
        sim::Covariance row;
        sim::Covariance column;
        std::uint64_t replicates;
    };
    const Setting settings[] = {
        {"white 64x64", sim::Covariance::identity(64), sim::Covariance::identity(64), 3000},
        {"AR(.5) x exp(2) 64x128", sim::Covariance::ar1(0.5, 64), sim::Covariance::exponential(2.0, 128), 2400}};
    for (const auto& [name, row, column, replicates] : settings) {
        const theory::SeparableLaw law(row.spectrum(), column.spectrum(), AspectRatio::of(row.size(), column.size()));
        const double weaker = 2.0 * law.detection_threshold().value;
        double low = weaker;
        double high = 2.0 * weaker;
        for (int i = 0; i < 60; ++i) {
            const double middle = 0.5 * (low + high);
            const SignalStrength pair[] = {{middle}, {weaker}};
            (theory::spike_clusters(law, pair, row.size(), column.size()).size() == 1 ? low : high) = middle;
        }
        const sim::SpikedModel model{row, column, {{high}, {weaker}}};
        Moments shares;
        for (std::uint64_t r = 0; r < replicates; ++r) {
            const sim::SpikedSample sample = sim::sample(model, seed, name, r);
            arma::vec eigenvalues;
            arma::mat vectors;
            ASSERT_TRUE(arma::eig_sym(eigenvalues, vectors, sample.observed * sample.observed.t()));
            const arma::vec products = sample.left.t() * vectors.tail_cols(1);
            shares.add(products(1) * products(1) / arma::dot(products, products));
        }
        const double predicted = 0.5 / (s * s);
        const auto compared_with = [&](double expected) {
            return compare(shares, expected, margin * predicted,
                           close_false_alarm / static_cast<double>(std::size(settings)));
        };
        const Comparison found = compared_with(predicted);
        std::cout << fmt::format("{}: {:.4f} +- {:.4f}, expected {:.4f}; a deviation of {:.4f} would be detected\n",
                                 name, shares.mean, shares.standard_error(), predicted, found.detectable);
        EXPECT_NE(name_of(found.verdict), "fail") << name;
        // Negative controls: a coupling with the variance of an outlier, and with a quarter of it.
        EXPECT_EQ(name_of(compared_with(2.0 * predicted).verdict), "fail") << name;
        EXPECT_EQ(name_of(compared_with(0.5 * predicted).verdict), "fail") << name;
    }
}

/// The study that is shipped. With 1000 replicates and 200 other seeds, no question of the cells [2.1, 2], [2.2, 2.1,
/// 2] and [2.6, 2] failed, 2399 of 2400 passed and one was inconclusive, and overlaps wrong by 5 % always failed. Nor
/// did one fail over 200 seeds for the pairs 2.39, 2 and 1.92, 1.5 (thresholds) in AR(.5) x exp(2) 64x128, which are
/// just far enough apart: 2390 passed and 10 were inconclusive, all outliers of the strength 1.5.
TEST(CloseSpikesLaw, TheStudyOfCloseSpikesPassesAndOverlapsThatAreWrongByFivePercentFail) {
    const Experiment experiment = read_study(SPIKED_SOURCE_DIR "/validation/studies/close-spikes.toml").experiment;
    ASSERT_EQ(experiment.false_alarm, close_false_alarm);
    ASSERT_EQ(experiment.notes.size(), 1U);
    EXPECT_NE(experiment.notes[0].find("components 1 to 2"), std::string::npos) << experiment.notes[0];
    EXPECT_NE(experiment.notes[0].find("2 more of the cells"), std::string::npos) << experiment.notes[0];

    const std::string path = scratch_path("close-spikes.spiked");
    const auto found = judged_study(experiment, path);
    std::set<std::string> asked;
    for (const auto& [what, verdict] : found) {
        EXPECT_EQ(verdict, "pass") << what;
        asked.insert(what);
    }
    std::set<std::string> expected;
    for (const char* cell : {"[2, 2]", "[2.1, 2]", "[2.2, 2.1, 2]"})
        for (const char* metric : {"subspace_outlier", "subspace_overlap.left", "subspace_overlap.right"})
            expected.insert(fmt::format("signal.strength={} {} 1", cell, metric));
    for (const char* metric : {"outlier", "overlap.left", "overlap.right"})
        for (const int k : {1, 2}) expected.insert(fmt::format("signal.strength=[2.6, 2] {} {}", metric, k));
    EXPECT_EQ(asked, expected);

    // Negative controls: laws whose overlaps are wrong by 5 %. The replicates are those of the store.
    for (const double factor : {0.95, 1.05}) {
        Experiment wrong = experiment;
        for (auto& cell : wrong.cells)
            for (auto& prediction : cell.predictions)
                if (prediction.metric.find("overlap") != std::string::npos) prediction.value *= factor;
        for (const auto& [what, verdict] : judged_study(wrong, path)) {
            if (what.find("overlap") != std::string::npos) {
                EXPECT_EQ(verdict, "fail") << what << " times " << factor;
            }
        }
    }
    // And the limits of the single overlaps, taken for those of close spikes.
    Experiment single = experiment;
    const theory::SeparableLaw white(theory::identity_spectrum(), theory::identity_spectrum(), AspectRatio(1.0));
    for (auto& cell : single.cells) {
        std::erase_if(cell.predictions, [](const Prediction& one) { return one.claim != "overlap.left"; });
        if (cell.label != "signal.strength=[2.1, 2]") continue;
        cell.predictions.clear();
        for (const auto& [k, strength] : {std::pair{1, 2.1}, {2, 2.0}})
            cell.predictions.push_back(
                {"overlap.left", "overlap.left", 0, k, white.spike({strength}).overlap_left.value, 1.0});
    }
    const auto by_vector = judged_study(single, path);
    EXPECT_EQ(by_vector.at("signal.strength=[2.1, 2] overlap.left 1"), "fail");
    EXPECT_EQ(by_vector.at("signal.strength=[2.1, 2] overlap.left 2"), "fail");
}

TEST(CloseSpikes, SubspacesAreTheSameOnADevice) {
    Experiment experiment =
        parse_study(
            "spiked = 1\n[study]\nname = \"x\"\nseed = \"0x5eed\"\n[model]\nkind = \"spiked\"\nn = 12\nd = 16\n"
            "signal = { strength = [8.0, 3.0, 3.0, 2.8] }\n[[estimator]]\nname = \"eoptshrink\"\n"
            "[run]\nreps = { min = 6 }\n",
            "x")
            .experiment;
    const auto subspaces = [&] {
        std::map<std::pair<std::string, std::uint64_t>, double> found;
        const auto worker = experiment.worker(0, {0, 6});
        for (std::uint64_t r = 0; r < 6; ++r)
            for (const Observation& one : worker(r))
                if (const auto& name = metrics()[one.metric].name; name.starts_with("subspace_")) {
                    EXPECT_EQ(one.k, 2) << "the first spike of the cluster";
                    found[{name, r}] = one.value;
                }
        return found;
    };
    const auto on_cpu = subspaces();
    EXPECT_EQ(on_cpu.size(), 5U * 6U);
    std::vector<std::string> notes;
    ASSERT_TRUE(experiment.move_to(spiked::cuda::choose_device("emulated"), 1, notes));
    EXPECT_TRUE(notes.empty()) << notes.front();
    const auto on_device = subspaces();
    ASSERT_EQ(on_device.size(), on_cpu.size());
    bool same = true;
    for (const auto& [what, value] : on_cpu) {
        EXPECT_NEAR(on_device.at(what) / value, 1.0, 1e-9) << what.first;
        same = same && on_device.at(what) == value;
    }
    EXPECT_FALSE(same) << "negative control: the device did compute them";
}

}  // namespace
}  // namespace spiked::validation
