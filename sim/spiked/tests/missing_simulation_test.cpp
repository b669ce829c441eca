#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iostream>

#include "core/runtime/error.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/missing/missing_entries.hpp"

// The predicted law of a matrix with missing entries is compared with matrices that are drawn, masked and weighted.
namespace spiked::sim {
namespace {

constexpr double missing_false_alarm = 1e-6;  // of each test
const stream::StudySeed missing_seed = stream::StudySeed::parse("0x5eed0000000000000000000000006155");

struct MissingCase {
    const char* name;
    Covariance row;
    Covariance column;
    double share;
};

const std::vector<MissingCase>& missing_cases() {
    static const std::vector<MissingCase> cases = {
        {"white, 30 % seen", Covariance::identity(120), Covariance::identity(160), 0.3},
        {"exponential x AR(.7), 50 % seen", Covariance::exponential(1.0, 120), Covariance::ar1(0.7, 160), 0.5},
        {"AR(.7) x exponential, 60 % seen", Covariance::ar1(0.7, 160), Covariance::exponential(1.0, 120), 0.6}};
    return cases;
}

/// Outlier, overlaps and relative error of one spike in each replicate; the estimate has the singular value `shrunk`.
arma::mat observed_spikes(const SpikedModel& model, const char* name, std::uint64_t count, double shrunk) {
    arma::mat measured(count, 4);
    for (std::uint64_t r = 0; r < count; ++r) {
        const SpikedSample drawn = sample(model, missing_seed, name, r);
        arma::mat left, right;
        arma::vec values;
        if (!arma::svd_econ(left, values, right, drawn.observed)) return {};
        measured(r, 0) = values[0] * values[0];
        measured(r, 1) = std::pow(arma::dot(left.col(0), drawn.left.col(0)), 2);
        measured(r, 2) = std::pow(arma::dot(right.col(0), drawn.right.col(0)), 2);
        const arma::mat estimate = shrunk * left.col(0) * right.col(0).t();
        measured(r, 3) = arma::accu(arma::square(estimate - drawn.signal)) / arma::accu(arma::square(drawn.signal));
    }
    return measured;
}

TEST(MissingEntriesLaw, EqualsTheMeansOverReplicates) {
    constexpr std::uint64_t replicates = 60;
    // Relative, over p min(n, d): the predictions are limits, and the kurtosis of entries seen is 3 / p.
    constexpr double margin = 3.0;
    constexpr std::array statistics = {"outlier", "left overlap", "right overlap", "relative error"};
    const double comparisons = static_cast<double>(missing_cases().size() * statistics.size());
    const double z =
        boost::math::quantile(boost::math::complement(boost::math::normal(), missing_false_alarm / comparisons / 2.0));
    for (const MissingCase& c : missing_cases()) {
        const std::size_t rows = c.row.size(), columns = c.column.size();
        const AspectRatio aspect = AspectRatio::of(rows, columns);
        const theory::SeenSide row{c.row.spectrum(), c.row.is_diagonal()};
        const theory::SeenSide column{c.column.spectrum(), c.column.is_diagonal()};
        const theory::SeenSpectra limit = theory::seen_spectra(row, column, c.share);
        const SignalStrength strength{
            2.0 * theory::SeparableLaw(limit.row, limit.column, aspect).detection_threshold().value};
        const double signal_square = strength.value * strength.value / static_cast<double>(rows);
        const theory::SeenSpectra seen = theory::seen_spectra(row, column, c.share, signal_square);
        const theory::SeparableLaw law(seen.row, seen.column, aspect);
        // Negative control: the law of the whole matrix with all variances divided by p, colour and all.
        const auto divided = [&](const theory::Spectrum& spectrum) {
            std::vector<theory::Atom> atoms = spectrum.atoms();
            for (auto& atom : atoms) atom.value /= c.share;
            return theory::Spectrum(std::move(atoms));
        };
        const bool white = row.diagonal && column.diagonal;
        const theory::SeparableLaw wrong(row.spectrum, white ? column.spectrum : divided(column.spectrum), aspect);
        const SpikedModel model{.row = c.row, .column = c.column, .strengths = {strength}, .seen = c.share};
        const auto predicted = law.spike(strength), control = wrong.spike(strength);
        const arma::mat measured =
            observed_spikes(model, c.name, replicates, predicted.shrunk(theory::Loss::frobenius).value);
        ASSERT_EQ(measured.n_rows, replicates);
        const double expected[] = {predicted.outlier.value, predicted.overlap_left.value, predicted.overlap_right.value,
                                   theory::relative_error(law, {{strength}})};
        const double other[] = {control.outlier.value, control.overlap_left.value, control.overlap_right.value,
                                theory::relative_error(wrong, {{strength}})};
        bool control_fails = false;
        for (std::size_t k = 0; k < statistics.size(); ++k) {
            const double mean = arma::mean(measured.col(k));
            const double error = arma::stddev(measured.col(k)) / std::sqrt(static_cast<double>(replicates));
            const double relative = margin / (c.share * static_cast<double>(std::min(rows, columns)));
            const double allowed = relative * expected[k] + z * error;
            std::cout << fmt::format("{} {}: mean {:.4f}, predicted {:.4f}, control {:.4f}, allowed {:.4f}\n", c.name,
                                     statistics[k], mean, expected[k], other[k], allowed);
            EXPECT_LT(std::abs(mean - expected[k]), allowed) << c.name << " " << statistics[k];
            control_fails = control_fails || std::abs(mean - other[k]) > allowed;
        }
        EXPECT_TRUE(control_fails) << "the control passes: " << c.name;
    }
}

TEST(MissingEntriesLaw, SeesEntriesWithTheProbabilityAlone) {
    const SpikedModel model{
        .row = Covariance::identity(60), .column = Covariance::identity(50), .strengths = {{3.0}}, .seen = 0.35};
    std::size_t seen = 0;
    constexpr std::uint64_t replicates = 20;
    for (std::uint64_t r = 0; r < replicates; ++r) {
        const SpikedSample drawn = sample(model, missing_seed, "share", r);
        const arma::uvec places = arma::find(drawn.observed);
        seen += places.n_elem;
        // What is seen is the entry of the whole matrix over the share, and signal and noise add up to it.
        SpikedModel whole = model;
        whole.seen = 1.0;
        const SpikedSample all = sample(whole, missing_seed, "share", r);
        const double share = static_cast<double>(places.n_elem) / 3000.0;
        EXPECT_LT(arma::abs(drawn.observed.elem(places) * share - all.observed.elem(places)).max(), 1e-14);
        EXPECT_EQ(arma::abs(drawn.signal - all.signal).max(), 0.0);
        EXPECT_LT(arma::abs(drawn.signal + drawn.noise - drawn.observed).max(), 1e-15);
    }
    const auto limits = [&](double p) {
        const boost::math::binomial law(3000.0 * replicates, p);
        return std::pair(boost::math::quantile(law, missing_false_alarm / 2.0),
                         boost::math::quantile(boost::math::complement(law, missing_false_alarm / 2.0)));
    };
    const auto [low, high] = limits(0.35);
    EXPECT_GE(static_cast<double>(seen), low);
    EXPECT_LE(static_cast<double>(seen), high);
    EXPECT_GT(static_cast<double>(seen), limits(0.33).second) << "control: another probability";
}

TEST(MissingEntriesLaw, RejectsWhatCannotBeDrawn) {
    SpikedModel model{.row = Covariance::identity(8), .column = Covariance::identity(8), .strengths = {}};
    for (const double seen : {0.0, -1.0, 1.5, std::nan("")}) {
        model.seen = seen;
        EXPECT_THROW((void)sample(model, missing_seed, "bad", 0), Error) << seen;
    }
    model.seen = 0.5;
    model.colouring = Colouring::eigenbasis;
    EXPECT_THROW((void)sample(model, missing_seed, "bad", 0), Error);
}

TEST(MissingEntries, AreAsManyInRowsAndColumnsAsTheirProbabilitiesSay) {
    constexpr arma::uword n = 40, d = 30;
    constexpr std::uint64_t replicates = 40;
    constexpr double share = 0.5, spread = 0.4;
    const double z = boost::math::quantile(
        boost::math::complement(boost::math::normal(), missing_false_alarm / (2.0 * (n + d)) / 2.0));
    const auto factor = [](arma::uword at, arma::uword count) {
        return 1.0 + spread * (2.0 * (static_cast<double>(at) + 0.5) / static_cast<double>(count) - 1.0);
    };
    for (const Missing by : {Missing::rows, Missing::both, Missing::uniform}) {
        SpikedModel model{Covariance::identity(n), Covariance::identity(d), {}};
        model.seen = share;
        model.seen_by = by;
        model.seen_spread = by == Missing::uniform ? 0.0 : spread;
        arma::mat seen(n, d, arma::fill::zeros);
        for (std::uint64_t r = 0; r < replicates; ++r)
            seen += arma::conv_to<arma::mat>::from(sample(model, missing_seed, "lines", r).observed != 0.0);
        double largest = 0.0;  // deviation in standard errors, from the probabilities of rows and of `both`
        const auto compare = [&](double found, double probability, arma::uword of) {
            const double count = static_cast<double>(of) * replicates;
            largest = std::max(
                largest, std::abs(found / count - probability) / std::sqrt(probability * (1.0 - probability) / count));
        };
        for (arma::uword i = 0; i < n; ++i) compare(arma::accu(seen.row(i)), share * factor(i, n), d);
        for (arma::uword j = 0; j < d; ++j)
            compare(arma::accu(seen.col(j)), share * (by == Missing::both ? factor(j, d) : 1.0), n);
        EXPECT_EQ(largest < z, by != Missing::uniform) << enum_name(by) << " " << largest << " of at most " << z;
    }
    SpikedModel impossible{Covariance::identity(n), Covariance::identity(d), {}};
    impossible.seen = 0.9;
    impossible.seen_by = Missing::rows;
    impossible.seen_spread = 0.2;  // more than 1
    EXPECT_THROW(require_possible(impossible), Error);
    impossible.seen_by = Missing::uniform;
    EXPECT_THROW(require_possible(impossible), Error);
}

}  // namespace
}  // namespace spiked::sim
