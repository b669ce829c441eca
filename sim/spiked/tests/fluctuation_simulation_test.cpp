#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iostream>

#include "sim/spiked/covariance.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/finite_size.hpp"

// The predicted first-order fluctuations of one spike are compared with plain simulation: the standard deviations over
// replicates of the outlier and of the overlaps.
namespace spiked::validation {
namespace {

using sim::Covariance;

struct Setting {
    const char* name;
    Covariance row;
    Covariance column;
};

constexpr std::uint64_t replicates = 3000;
constexpr double false_alarm = 1e-6;  // of the whole test
/// The prediction is of first order, its error O(1/d). The relative margin is this over min(n, d).
constexpr double margin = 2.0;

TEST(SpikeFluctuation, EqualsTheStandardDeviationOverReplicates) {
    const stream::StudySeed seed = stream::StudySeed::parse("0x5eed0000000000000000000000f1c7");
    const Setting settings[] = {
        {"white 64x128", Covariance::identity(64), Covariance::identity(128)},
        {"AR(.5) x exp(2) 64x128", Covariance::ar1(0.5, 64), Covariance::exponential(2.0, 128)},
        {"exp(2) x white 128x128", Covariance::exponential(2.0, 128), Covariance::identity(128)},
        {"AR(.5) x exp(1) 128x64", Covariance::ar1(0.5, 128), Covariance::exponential(1.0, 64)}};
    constexpr std::array statistics = {"outlier", "left overlap", "right overlap"};
    const double comparisons = static_cast<double>(std::size(settings) * statistics.size());
    const double z =
        boost::math::quantile(boost::math::complement(boost::math::normal(), false_alarm / comparisons / 2));
    for (const Setting& setting : settings) {
        const std::size_t rows = setting.row.size();
        const std::size_t columns = setting.column.size();
        const theory::SeparableLaw law(setting.row.spectrum(), setting.column.spectrum(),
                                       AspectRatio::of(rows, columns));
        const SignalStrength strength{2.5 * law.detection_threshold().value};
        const sim::SpikedModel model{setting.row, setting.column, {strength}};
        arma::mat measured(replicates, statistics.size());
        for (std::uint64_t r = 0; r < replicates; ++r) {
            const sim::SpikedSample sample = sim::sample(model, seed, setting.name, r);
            const bool wide = rows < columns;
            const arma::mat wide_sample = wide ? sample.observed : arma::mat(sample.observed.t());
            arma::vec eigenvalues;
            arma::mat vectors;
            ASSERT_TRUE(arma::eig_sym(eigenvalues, vectors, wide_sample * wide_sample.t()));
            const arma::vec short_side = vectors.tail_cols(1);
            const arma::vec long_side = arma::normalise(arma::vec(wide_sample.t() * short_side));
            measured(r, 0) = eigenvalues.back();
            measured(r, 1) = std::pow(arma::dot(wide ? short_side : long_side, sample.left.col(0)), 2);
            measured(r, 2) = std::pow(arma::dot(wide ? long_side : short_side, sample.right.col(0)), 2);
        }
        const auto predicted = theory::spike_fluctuation(law, strength, rows, columns);
        const double expected[] = {predicted.outlier, predicted.overlap_left, predicted.overlap_right};
        for (std::size_t k = 0; k < statistics.size(); ++k) {
            const double deviation = arma::stddev(measured.col(k));
            // By the delta method the relative variance of a sample variance is (kurtosis - 1) / R, of its root a
            // quarter.
            const arma::vec standard = (measured.col(k) - arma::mean(measured.col(k))) / deviation;
            const double kurtosis = arma::mean(arma::vec(arma::pow(standard, 4)));
            const double error = 0.5 * std::sqrt((kurtosis - 1.0) / static_cast<double>(replicates));
            const double allowed = margin / static_cast<double>(std::min(rows, columns)) + z * error;
            const double ratio = deviation / expected[k];
            std::cout << fmt::format("{} {}: {:.3f} of the predicted standard deviation, +- {:.3f}, allowed {:.3f}\n",
                                     setting.name, statistics[k], ratio, error, allowed);
            EXPECT_LT(std::abs(ratio - 1.0), allowed) << setting.name << " " << statistics[k];
            // Negative control: a size that is wrong by a factor of 1.5.
            EXPECT_GT(std::abs(ratio * std::sqrt(1.5) - 1.0), allowed) << "the control passes: " << setting.name;
        }
    }
}

}  // namespace
}  // namespace spiked::validation
