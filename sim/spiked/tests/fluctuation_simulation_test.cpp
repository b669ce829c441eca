#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iostream>
#include <utility>

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

const stream::StudySeed fluctuation_seed = stream::StudySeed::parse("0x5eed0000000000000000000000f1c7");

/// Outlier, left and right overlap of the only spike in each replicate; nothing if a decomposition fails.
arma::mat simulated_spike(const sim::SpikedModel& model, const char* name, std::uint64_t count) {
    arma::mat measured(count, 3);
    for (std::uint64_t r = 0; r < count; ++r) {
        const sim::SpikedSample sample = sim::sample(model, fluctuation_seed, name, r);
        const bool wide = sample.observed.n_rows < sample.observed.n_cols;
        const arma::mat wide_sample = wide ? sample.observed : arma::mat(sample.observed.t());
        arma::vec eigenvalues;
        arma::mat vectors;
        if (!arma::eig_sym(eigenvalues, vectors, wide_sample * wide_sample.t())) return {};
        const arma::vec short_side = vectors.tail_cols(1);
        const arma::vec long_side = arma::normalise(arma::vec(wide_sample.t() * short_side));
        measured(r, 0) = eigenvalues.back();
        measured(r, 1) = std::pow(arma::dot(wide ? short_side : long_side, sample.left.col(0)), 2);
        measured(r, 2) = std::pow(arma::dot(wide ? long_side : short_side, sample.right.col(0)), 2);
    }
    return measured;
}

/// A standard deviation and its standard error relative to it: by the delta method the relative variance of a sample
/// variance is (kurtosis - 1) / R, of its root a quarter.
std::pair<double, double> deviation_of(const arma::vec& values) {
    const double deviation = arma::stddev(values);
    const arma::vec standard = (values - arma::mean(values)) / deviation;
    const double kurtosis = arma::mean(arma::vec(arma::pow(standard, 4)));
    return {deviation, 0.5 * std::sqrt((kurtosis - 1.0) / static_cast<double>(values.n_elem))};
}

TEST(SpikeFluctuation, EqualsTheStandardDeviationOverReplicates) {
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
        const arma::mat measured = simulated_spike(model, setting.name, replicates);
        ASSERT_EQ(measured.n_rows, replicates);
        const auto predicted = theory::spike_fluctuation(law, strength, rows, columns);
        const double expected[] = {predicted.outlier, predicted.overlap_left, predicted.overlap_right};
        for (std::size_t k = 0; k < statistics.size(); ++k) {
            const auto [deviation, error] = deviation_of(measured.col(k));
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

// Entries that are not Gaussian, with the effect of their fourth cumulant: to first order in k/d for Haar vectors, and
// in full for vectors on one coordinate. Error rates are nominal: the errors are those of the delta method.
TEST(SpikeFluctuation, IncludesTheKurtosisOfTheEntries) {
    constexpr std::uint64_t count = 3000;
    struct Case {
        const char* name;
        std::size_t rows, columns;
        const char* entries;
        const char* vectors;
        double fourth_powers;  ///< of the vectors; 0: Haar
    };
    const Case cases[] = {{"sparse, Haar", 128, 128, "sparse:0.05", "haar", 0.0},
                          {"rademacher, localised", 64, 128, "rademacher", "localised:1", 1.0}};
    constexpr std::array statistics = {"outlier", "left overlap", "right overlap"};
    const double z = boost::math::quantile(boost::math::complement(boost::math::normal(), false_alarm / (8.0 * 2.0)));
    for (const Case& c : cases) {
        const auto entries = sim::EntryLaw::parse(c.entries);
        const auto vectors = sim::parse_signal_vectors(c.vectors);
        const theory::SeparableLaw law(theory::identity_spectrum(), theory::identity_spectrum(),
                                       AspectRatio::of(c.rows, c.columns));
        const SignalStrength strength{2.0 * law.detection_threshold().value};
        const arma::mat measured = simulated_spike({Covariance::identity(c.rows),
                                                    Covariance::identity(c.columns),
                                                    {strength},
                                                    entries,
                                                    vectors.left,
                                                    vectors.right},
                                                   c.name, count);
        ASSERT_EQ(measured.n_rows, count);
        theory::NoiseEntries noise{entries.moments().kurtosis - 3.0};
        if (c.fourth_powers > 0.0) noise.left_fourth_powers = noise.right_fourth_powers = c.fourth_powers;
        const double d = static_cast<double>(c.columns);
        const double second_order = std::pow(noise.excess_kurtosis / d, 2);
        const auto predicted = theory::spike_fluctuation(law, strength, c.rows, c.columns, noise);
        const auto without = theory::spike_fluctuation(law, strength, c.rows, c.columns);
        const double expected[] = {predicted.outlier, predicted.overlap_left, predicted.overlap_right};
        const double gaussian[] = {without.outlier, without.overlap_left, without.overlap_right};
        for (std::size_t k = 0; k < statistics.size(); ++k) {
            const auto [deviation, error] = deviation_of(measured.col(k));
            const double allowed = margin / static_cast<double>(c.rows) + 3.0 * second_order + z * error;
            std::cout << fmt::format(
                "{}, {}: {:.3f} of the predicted standard deviation, {:.3f} of that without kurtosis, allowed {:.3f}\n",
                c.name, statistics[k], deviation / expected[k], deviation / gaussian[k], allowed);
            EXPECT_LT(std::abs(deviation / expected[k] - 1.0), allowed) << c.name << " " << statistics[k];
            // Control: the formula for Gaussian entries. Haar vectors change the outlier by less than is allowed.
            if (k > 0 || c.fourth_powers > 0.0) {
                EXPECT_GT(std::abs(deviation / gaussian[k] - 1.0), allowed) << "the control passes: " << c.name;
            }
        }
        // The error of an overlap that is computed from the outlier, which needs their covariance too.
        const theory::SpikeVariances at =
            theory::spike_variances(law.spike_curve(strength), law.bulk_edge(), law.aspect(), c.rows, c.columns);
        const theory::KurtosisEffect& of = predicted.of_entries;
        const auto error_of = [&](double variance, double covariance, double outlier, double response) {
            return std::sqrt(variance - 2.0 * response * covariance + response * response * outlier);
        };
        const auto check_error = [&](const char* what, arma::uword k, double slope, double with, double without_it) {
            const arma::vec errors =
                arma::log(arma::vec(measured.col(k))) - slope * arma::log(arma::vec(measured.col(0)));
            const auto [deviation, error] = deviation_of(errors);
            const double allowed = 3.0 * margin / static_cast<double>(c.rows) + 3.0 * second_order + z * error;
            std::cout << fmt::format(
                "{}, {} given the outlier: {:.3f} of the prediction, {:.3f} without kurtosis, allowed {:.3f}\n", c.name,
                what, deviation / with, deviation / without_it, allowed);
            EXPECT_LT(std::abs(deviation / with - 1.0), allowed) << c.name << " " << what;
            EXPECT_GT(std::abs(deviation / without_it - 1.0), allowed) << "the control passes: " << c.name;
        };
        check_error(
            "left overlap", 1, at.left_response,
            error_of(at.log.overlap_left + of.overlap_left_variance, at.log.outlier_with_left + of.outlier_with_left,
                     at.log.outlier + of.outlier_variance, at.left_response),
            error_of(at.log.overlap_left, at.log.outlier_with_left, at.log.outlier, at.left_response));
        check_error("right overlap", 2, at.right_response,
                    error_of(at.log.overlap_right + of.overlap_right_variance,
                             at.log.outlier_with_right + of.outlier_with_right, at.log.outlier + of.outlier_variance,
                             at.right_response),
                    error_of(at.log.overlap_right, at.log.outlier_with_right, at.log.outlier, at.right_response));
        if (c.fourth_powers > 0.0) continue;
        const double limit = law.spike(strength).overlap_left.value;
        const double shift = limit * predicted.of_entries.overlap_left_shift;
        const double found = arma::mean(measured.col(1)) - limit;
        const double allowed = 1.0 / (4.0 * d) + 0.1 * second_order +
                               z * arma::stddev(measured.col(1)) / std::sqrt(static_cast<double>(count));
        std::cout << fmt::format("{}: the mean left overlap shifts by {:.4f}, predicted {:.4f}, allowed {:.4f}\n",
                                 c.name, found, shift, allowed);
        EXPECT_NEAR(found, shift, allowed) << c.name;
        EXPECT_GT(std::abs(found), allowed) << "the control passes: no shift";
    }
}

/// The largest eigenvalues of blocks of white noise, a row for each.
arma::mat top_noise(std::size_t rows, std::size_t columns, const char* entries, std::uint64_t count,
                    std::size_t ranks) {
    const sim::SpikedModel model{
        Covariance::identity(rows), Covariance::identity(columns), {}, sim::EntryLaw::parse(entries)};
    arma::mat values(count, ranks);
    for (std::uint64_t r = 0; r < count; ++r) {
        const arma::mat noise = sim::sample(model, fluctuation_seed, entries, r).observed;
        const arma::vec found = arma::sort(arma::eig_sym(arma::mat(noise * noise.t())), "descend");
        values.row(r) = found.head(ranks).t();
    }
    return values;
}

// Eigenvalues behind the largest one move less, and so does the edge that eoptshrink extrapolates from them.
TEST(KurtosisShift, FallsFromTheEdgeIntoTheBulk) {
    constexpr std::uint64_t count = 4000;
    constexpr std::size_t ranks = 15;
    const double z = boost::math::quantile(boost::math::complement(boost::math::normal(), false_alarm / 24.0));
    for (const std::size_t columns : {std::size_t{64}, std::size_t{160}}) {
        const std::size_t rows = 64;
        const theory::SeparableLaw law(theory::identity_spectrum(), theory::identity_spectrum(),
                                       AspectRatio::of(rows, columns));
        const theory::NoiseEntries laplace{sim::EntryLaw::parse("laplace").moments().kurtosis - 3.0};
        const double of_edge = theory::kurtosis_edge_shift(law, columns, laplace);
        const arma::mat gaussian = top_noise(rows, columns, "gaussian", count, ranks);
        const arma::mat moved = top_noise(rows, columns, "laplace", count, ranks);
        // The next order in k d^(-1/3) was .06 of the shift of the edge at most where it was measured.
        const auto check = [&](const std::string& what, const arma::vec& before, const arma::vec& after,
                               double predicted, bool control) {
            const double shift = arma::mean(after) - arma::mean(before);
            const double error =
                std::hypot(arma::stddev(before), arma::stddev(after)) / std::sqrt(static_cast<double>(count));
            const double allowed = 0.1 * of_edge + z * error;
            std::cout << fmt::format("{} x {}, {}: shift {:.4f}, predicted {:.4f}, allowed {:.4f}\n", rows, columns,
                                     what, shift, predicted, allowed);
            EXPECT_NEAR(shift, predicted, allowed) << what;
            // Control: the shift of the edge for all.
            if (control) {
                EXPECT_GT(std::abs(shift - of_edge), allowed) << "the control passes: " << what;
            }
        };
        for (const std::size_t j : {std::size_t{0}, std::size_t{2}, std::size_t{4}, std::size_t{8}, ranks - 1})
            check(fmt::format("eigenvalue {}", j + 1), gaussian.col(j), moved.col(j),
                  theory::kurtosis_shift_at(law, columns, laplace, {arma::mean(gaussian.col(j))}), j >= 8);
        const std::size_t k = theory::pilot_within(theory::pilot_count(rows), rows);
        ASSERT_LT(2 * k, ranks);
        const auto estimates = [&](const arma::mat& values) -> arma::vec {
            return values.col(k) + theory::edge_extrapolation * (values.col(k) - values.col(2 * k));
        };
        const auto predicted = [&](const theory::NoiseEntries& entries) {
            return theory::finite_size(law, rows, columns, {}, 0.01, entries).edge_estimate->value;
        };
        check("estimated edge", estimates(gaussian), estimates(moved), predicted(laplace) - predicted({}), true);
    }
}

}  // namespace
}  // namespace spiked::validation
