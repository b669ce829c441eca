#include "estimators/quantizers/entropy_coded.hpp"

#include <gtest/gtest.h>

#include <boost/math/special_functions/gamma.hpp>
#include <map>

#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/rate_distortion.hpp"

namespace spiked::estimators {
namespace {

/// Entropy and squared error of bins of equal width around 0 with their means as levels, summed over a fine grid of the
/// density.
struct Summed {
    double entropy = 0.0;
    double distortion = 1.0;
};

Summed summed(std::size_t dimension, double step) {
    const double d = static_cast<double>(dimension);
    const double constant = boost::math::tgamma_ratio(0.5 * d, 0.5 * (d - 1.0)) / std::sqrt(std::acos(-1.0) * d);
    constexpr int points = 2'000'000;
    const double width = 2.0 * std::sqrt(d) / points;
    std::map<long, std::pair<double, double>> cells;  // mass, first moment
    double second = 0.0;
    for (int i = 0; i < points; ++i) {
        const double z = -std::sqrt(d) + (i + 0.5) * width;
        const double mass = constant * std::pow(1.0 - z * z / d, 0.5 * (d - 3.0)) * width;
        auto& cell = cells[std::lround(z / step)];
        cell.first += mass;
        cell.second += mass * z;
        second += mass * z * z;
    }
    Summed found{0.0, second};
    for (const auto& [index, cell] : cells)
        if (cell.first > 0.0) {
            found.entropy -= cell.first * std::log2(cell.first);
            found.distortion -= cell.second * cell.second / cell.first;
        }
    return found;
}

TEST(EntropyCodedReference, StepLevelsAndFrequenciesAreThoseOfTheLaw) {
    for (const auto& [dimension, rate] : {std::pair{8, 1.0}, {128, 0.5}, {128, 2.0}, {128, 2.5}, {64, 4.0}}) {
        const auto d = static_cast<std::size_t>(dimension);
        const EntropyCodedLevels cells = entropy_coded_levels(CodebookKind::sphere, d, rate);
        EXPECT_NEAR(summed(d, cells.step).entropy, rate, 1e-5) << d << " " << rate;
        std::uint64_t sum = 0;
        double entropy = 0.0;
        for (std::size_t i = 0; i < cells.levels.size(); ++i) {
            sum += cells.frequencies[i];
            const double probability = static_cast<double>(cells.frequencies[i]) / 0x1p24;
            entropy -= probability * std::log2(probability);
            EXPECT_EQ(cells.levels[i], -cells.levels[cells.levels.size() - 1 - i]);
        }
        EXPECT_EQ(sum, std::uint64_t{1} << 24);
        EXPECT_NEAR(entropy, rate, 1e-3);
    }
    // A normal coordinate, compared with the function of theory/ for that law.
    for (const double rate : {0.5, 1.0}) {
        const auto expected = theory::entropy_coded_normal_at_rate(rate);
        EXPECT_NEAR(entropy_coded_levels(CodebookKind::normal, 4096, rate).step, expected.step, 1e-8 * expected.step);
    }
}

/// The number of bits by the frequencies for decoded rows with levels of unit scale.
double ideal_bits(const EntropyCodedLevels& cells, const arma::mat& decoded) {
    double bits = 0.0;
    for (const double level : decoded) {
        const auto at = std::lower_bound(cells.levels.begin(), cells.levels.end(), level - 1e-9) - cells.levels.begin();
        bits -= std::log2(static_cast<double>(cells.frequencies[static_cast<std::size_t>(at)]) / 0x1p24);
    }
    return bits;
}

TEST(EntropyCodedLaw, RateAndErrorAreThoseOfTheLawAndBytesAreTheRate) {
    constexpr std::size_t d = 128;
    const QuantizerOptions options = {
        .rotation = RotationKind::identity, .norm = NumberFormat::fp64, .seed = test_seed};
    for (const double rate : {1.0, 2.0, 2.5}) {
        const RowQuantizer quantizer = row_quantizer("ecsq:scale=norm", d, rate, options);
        const EntropyCodedLevels cells = entropy_coded_levels(CodebookKind::sphere, d, rate);
        arma::vec bits(40);
        arma::vec errors(40);
        for (std::size_t block = 0; block < bits.n_elem; ++block) {
            // Rows have norm sqrt(d), so the decoded entries are the levels.
            const arma::mat rows = std::sqrt(static_cast<double>(d)) * arma::normalise(gaussian(64, d, block), 2, 1);
            const Encoded encoded = quantizer.encode(rows);
            const arma::mat decoded = quantizer.decode(encoded.bytes, rows.n_rows);
            const double ideal = ideal_bits(cells, decoded);
            const double entries = static_cast<double>(rows.n_elem);
            EXPECT_NEAR(static_cast<double>(encoded.ledger.bits(Item::indices)), ideal, 66.0);
            EXPECT_GE(static_cast<double>(encoded.ledger.bits(Item::indices)), ideal);
            bits(block) = ideal / entries;
            errors(block) = std::pow(relative_error(decoded, rows), 2);
        }
        const Summed expected = summed(d, cells.step);
        const MeanTest of_rate(bits, rate, 6);
        const MeanTest of_error(errors, expected.distortion, 6);
        EXPECT_TRUE(of_rate.agrees()) << of_rate;
        EXPECT_TRUE(of_error.agrees()) << of_error;
        std::cout << rate << " bits: error " << of_error.mean << "; " << of_error << "; for normal entries "
                  << theory::entropy_coded_normal_at_rate(rate).distortion << "\n";
        // Negative controls: a twentieth of a bit and the error that it is worth would be detected.
        EXPECT_FALSE(MeanTest(bits, rate - 0.05, 6).agrees());
        const double other = summed(d, entropy_coded_levels(CodebookKind::sphere, d, rate - 0.05).step).distortion;
        EXPECT_FALSE(MeanTest(errors, other, 6).agrees());
    }
    // The published figure for long rows.
    EXPECT_NEAR(theory::entropy_coded_normal_at_rate(2.0).distortion, 0.0889, 5e-5);
}

TEST(EntropyCoded, RowsOfAnotherLawAreDecodedCorrectlyWithOtherBits) {
    const QuantizerOptions options = {
        .rotation = RotationKind::identity, .norm = NumberFormat::fp32, .seed = test_seed};
    const RowQuantizer quantizer = row_quantizer("ecsq", 64, 3, options);
    arma::mat one_hot(40, 64);
    for (std::size_t t = 0; t < 40; ++t) one_hot(t, t) = t % 2 == 0 ? 3.0 : -0.5;
    const Encoded rare = quantizer.encode(one_hot);
    EXPECT_LT(relative_error(quantizer.decode(rare.bytes, 40), one_hot), 0.02);
    EXPECT_LT(rare.ledger.bits(Item::indices), quantizer.encode(gaussian(40, 64, 1)).ledger.bits(Item::indices));
    // A row of entries of one size, which has another law.
    const arma::mat constant(3, 64, arma::fill::value(-2.0));
    EXPECT_LT(relative_error(through(quantizer, constant), constant), 1e-6);
}

TEST(EntropyCoded, DamagedBytesAreRejectedOrDecodeToNumbers) {
    const RowQuantizer quantizer = row_quantizer("ecsq", 16, 2.25, {.seed = test_seed});
    const Encoded encoded = quantizer.encode(gaussian(30, 16, 2));
    std::size_t noticed = 0;
    for (std::size_t i = 60; i < encoded.bytes.size(); ++i) {
        auto damaged = encoded.bytes;
        damaged[i] ^= 0x10;
        try {
            EXPECT_TRUE(quantizer.decode(damaged, 30).is_finite());
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
            ++noticed;
        }
    }
    // The state that remains at the end is practically random.
    EXPECT_GT(noticed, (encoded.bytes.size() - 60) * 9 / 10);
}

TEST(EntropyCoded, RatesFromAQuarterOfABitToEight) {
    const arma::mat rows = gaussian(200, 32, 4);
    double before = 1.0;
    for (const double rate : {0.25, 0.75, 1.5, 2.0, 3.25, 6.0, 8.0}) {
        const Encoded encoded = row_quantizer("ecsq", 32, rate, {.seed = test_seed}).encode(rows);
        EXPECT_NEAR(static_cast<double>(encoded.ledger.bits(Item::indices)) / 6400.0, rate, 0.1) << rate;
        const double error = relative_error(through(row_quantizer("ecsq", 32, rate, {.seed = test_seed}), rows), rows);
        EXPECT_LT(error, before) << rate;
        before = error;
    }
    message_of([] { (void)row_quantizer("ecsq", 32, 0.2, {}); }, ErrorKind::usage);
    message_of([] { (void)row_quantizer("ecsq", 1, 2, {}); }, ErrorKind::usage);
}

}  // namespace
}  // namespace spiked::estimators
