#include "estimators/ranks/eigenvalue_gaps.hpp"

#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>

#include "estimators/ranks/rank_rule.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

/// The signals, followed by noise at its ideal positions L - C (j - 1)^(2/3).
std::vector<double> ideal(const std::vector<double>& signals, std::size_t count, double edge, double step) {
    std::vector<double> values = signals;
    for (std::size_t j = signals.size(); j < count; ++j)
        values.push_back(edge - step * std::pow(static_cast<double>(j), 2.0 / 3.0));
    return values;
}

TEST(EigenvalueGaps, CountsSignalsTwoStepsAboveIdealNoise) {
    // Any five noise eigenvalues give the same line, so the decisive gap is exactly 2 C.
    constexpr double step = 0.25;
    for (const std::size_t count : {60U, 128U})
        for (const std::size_t rank : {0U, 1U, 2U, 5U}) {
            const double top = 20.0 - step * std::pow(static_cast<double>(rank), 2.0 / 3.0);
            for (const double gap : {1.999, 2.001}) {
                std::vector<double> signals(rank);
                for (std::size_t i = 0; i < rank; ++i)
                    signals[i] = top + gap * step + 0.001 * static_cast<double>(rank - 1 - i);
                EXPECT_EQ(eigenvalue_gap_rank(ideal(signals, count, 20.0, step), 8), gap > 2.0 ? rank : 0U)
                    << count << " " << rank << " " << gap;
            }
        }
}

/// Onatski's published steps, with a least-squares solver.
std::size_t by_steps(const arma::vec& values, arma::uword most) {
    most = std::min<arma::uword>(most, values.n_elem - 5);
    arma::uword j = most + 1;
    arma::uword rank = 0;
    for (int round = 0; round < 5; ++round) {
        const arma::vec places = arma::regspace(static_cast<double>(j) - 1.0, static_cast<double>(j) + 3.0);
        const arma::mat design = arma::join_rows(arma::ones(5), arma::pow(places, 2.0 / 3.0));
        const arma::vec line = arma::solve(design, values.subvec(j - 1, j + 3));
        const double delta = 2.0 * std::abs(line[1]);
        rank = 0;
        for (arma::uword i = 1; i <= most; ++i)
            if (values[i - 1] - values[i] >= delta) rank = i;
        j = rank + 1;
    }
    return rank;
}

TEST(EigenvalueGapsReference, FollowsThePublishedSteps) {
    std::size_t found = 0;
    for (std::uint64_t trial = 0; trial < 400; ++trial) {
        const arma::uword side = 7 + trial % 60;
        arma::mat block = gaussian(side, side + trial % 30, trial) / std::sqrt(static_cast<double>(side));
        block.col(0) *= 1.0 + static_cast<double>(trial % 7);
        block.col(1) *= 1.0 + static_cast<double>(trial % 3);
        const arma::vec values = arma::square(arma::svd(block));
        for (const std::size_t most : {1U, 4U, 12U}) {
            const std::vector<double> eigenvalues(values.begin(), values.end());
            const std::size_t rank = eigenvalue_gap_rank(eigenvalues, most);
            ASSERT_EQ(rank, by_steps(values, most)) << "trial " << trial << ", at most " << most;
            found += rank;
        }
    }
    EXPECT_GT(found, 300U);
}

TEST(EigenvalueGaps, HandlesSmallExactAndEqualSpectra) {
    EXPECT_EQ(eigenvalue_gap_rank({}), 0U);
    EXPECT_EQ(eigenvalue_gap_rank(std::vector<double>{5.0, 1.0, 0.9, 0.8, 0.7}), 0U);
    EXPECT_EQ(eigenvalue_gap_rank(std::vector<double>{50.0, 1.0, 0.95, 0.9, 0.85, 0.8}, 3), 1U);
    EXPECT_EQ(eigenvalue_gap_rank(std::vector<double>(40, 2.0)), 0U);
    std::vector<double> exact(40, 0.0);
    exact[0] = 4.0, exact[1] = 4.0, exact[2] = 1.0;
    EXPECT_EQ(eigenvalue_gap_rank(exact), 3U);
}

TEST(RankRule, IsAcceptedWhereverARankIs) {
    for (const auto& rule : rank_rules())
        for (const char* method : {"svd:", "optshrink:", "eoptshrink:rank="}) {
            const std::string name = method + rule.name;
            std::vector<double> values(64);
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2.0 - 0.02 * static_cast<double>(i);
            values[0] = 40.0;
            const SpectralEstimator estimator = spectral_estimator(name);
            if (estimator.estimate_block) {
                message_of([&] { (void)estimator.estimate(values, {64, 64}); }, ErrorKind::usage);
                continue;
            }
            EXPECT_EQ(estimator.estimate(values, {64, 64}).rank, 1U) << name;
        }
    for (const char* name :
         {"svd:xy", "svd:ed:bits=3", "svd:3:cap=2", "svd:rd:cap=2", "optshrink", "svd:ed:cap=-1",
          "eoptshrink:rank=rd:bits=9", "eoptshrink:bits=3", "eoptshrink:rank=ed:bits=3",
          // Options without effect.
          "eoptshrink:cap=1", "eoptshrink:rank=3:cap=1", "eoptshrink:rank=rd:cap=2", "eoptshrink:rank=3:margin=5",
          "eoptshrink:rank=ed:margin=5", "eoptshrink:edgefit:factor=3"})
        message_of([&] { (void)spectral_estimator(name); }, ErrorKind::usage);
    for (const char* name :
         {"eoptshrink:rank=ed:cap=2", "eoptshrink:edgefit:rank=rd:cap=2", "eoptshrink:rank=rd:bits=3",
          "eoptshrink:edgefit:margin=3", "eoptshrink:rank=3:factor=1.1"})
        EXPECT_EQ(spectral_estimator(name).name, name);
    EXPECT_NE(message_of([] { (void)spectral_estimator("svd:de"); }, ErrorKind::usage).find("rd, ed, kn, pa"),
              std::string::npos);
    EXPECT_EQ(spectral_estimator("eoptshrink:edgefit:cap=2").name, "eoptshrink:edgefit:cap=2");
}

}  // namespace
}  // namespace spiked::estimators
