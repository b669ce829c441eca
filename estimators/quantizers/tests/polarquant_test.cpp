#include "estimators/quantizers/polarquant.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

using std::numbers::pi;

struct LaterLevel {
    double kept;  ///< E cos(angle - level)
    std::vector<double> levels;
};

/// The best `cells` levels for the density sin(2 a)^power on [0, pi/2]: thresholds are moved to the middle of the means
/// of the neighbouring bins, all by sums over a fine grid.
LaterLevel later_level(int cells, int power) {
    constexpr int points = 20000;
    std::vector<double> angles(points);
    std::vector<double> weights(points);
    for (int i = 0; i < points; ++i) {
        angles[i] = (i + 0.5) * 0.5 * pi / points;
        weights[i] = std::pow(std::sin(2.0 * angles[i]), power);
    }
    std::vector<double> levels(cells);
    for (int c = 0; c < cells; ++c) levels[c] = (c + 0.5) * 0.5 * pi / cells;
    double kept = 0.0;
    for (int round = 0; round < 400; ++round) {
        std::vector<double> mass(cells, 0.0);
        std::vector<double> sum(cells, 0.0);
        kept = 0.0;
        double all = 0.0;
        for (int i = 0; i < points; ++i) {
            int nearest = 0;
            for (int c = 1; c < cells; ++c)
                if (std::abs(angles[i] - levels[c]) < std::abs(angles[i] - levels[nearest])) nearest = c;
            mass[nearest] += weights[i];
            sum[nearest] += weights[i] * angles[i];
            kept += weights[i] * std::cos(angles[i] - levels[nearest]);
            all += weights[i];
        }
        kept /= all;
        for (int c = 0; c < cells; ++c) levels[c] = sum[c] / mass[c];
    }
    return {kept, levels};
}

double kept_by_first_level(unsigned bits) {
    const double half = pi / static_cast<double>(1U << bits);
    return std::sin(half) / half;
}

// Normal coordinates: angles are independent of each other and of the radius, so the factors of the levels multiply.
TEST(PolarquantLaw, SquaredErrorIsTheClosedForm) {
    const arma::mat rows = gaussian(1500, 16, 1);
    for (const unsigned bits : {2U, 3U, 4U}) {
        const int later = 1 << std::max(1, static_cast<int>(bits) - 2);
        double kept = kept_by_first_level(bits);
        for (const int power : {1, 3, 7}) kept *= later_level(later, power).kept;
        const arma::mat decoded = through(
            row_quantizer("polarquant", 16, bits, {.rotation = RotationKind::identity, .norm = NumberFormat::fp64}),
            rows);
        // Radii are exact: errors relative to their squares have this mean for any radii.
        const arma::vec errors = arma::sum(arma::square(decoded - rows), 1) / arma::sum(arma::square(rows), 1);
        const MeanTest found(errors, 2.0 - 2.0 * kept, 3);
        EXPECT_TRUE(found.agrees()) << bits << ": " << found;
        std::cout << bits << " bits: " << found << "\n";
        // Negative control: one level left out of the product.
        EXPECT_FALSE(MeanTest(errors, 2.0 - 2.0 * kept / later_level(later, 7).kept, 3).agrees());
        for (std::size_t t = 0; t < 10; ++t)
            EXPECT_NEAR(arma::norm(decoded.row(t)), arma::norm(rows.row(t)), 1e-12 * arma::norm(rows.row(t)));
    }
}

TEST(PolarquantReference, DecodedAnglesAreTheLloydMaxLevelsOfTheirLaw) {
    for (const unsigned bits : {3U, 4U}) {
        arma::mat radii = through(
            row_quantizer("polarquant", 16, bits, {.rotation = RotationKind::identity, .norm = NumberFormat::fp64}),
            gaussian(300, 16, 4));
        for (const int power : {0, 1, 3, 7}) {
            arma::mat sizes(radii.n_rows, radii.n_cols / 2);
            std::vector<bool> met(std::size_t{1} << (bits - 2), false);
            const auto levels = power > 0 ? later_level(1 << (bits - 2), power).levels : std::vector<double>();
            for (arma::uword t = 0; t < sizes.n_rows; ++t)
                for (arma::uword i = 0; i < sizes.n_cols; ++i) {
                    sizes(t, i) = std::hypot(radii(t, 2 * i), radii(t, 2 * i + 1));
                    if (power == 0) continue;  // angles of coordinates have equal bins
                    const double angle = std::atan2(radii(t, 2 * i + 1), radii(t, 2 * i));
                    std::size_t nearest = 0;
                    for (std::size_t c = 1; c < levels.size(); ++c)
                        if (std::abs(angle - levels[c]) < std::abs(angle - levels[nearest])) nearest = c;
                    met[nearest] = true;
                    EXPECT_NEAR(angle, levels[nearest], 1e-3) << bits << " bits, sin^" << power;
                }
            if (power > 0) {
                EXPECT_EQ(std::count(met.begin(), met.end(), false), 0) << power;
            }
            radii = sizes;
        }
    }
}

TEST(Polarquant, ThePublishedSettingTakes3875BitsPerEntry) {
    const Encoded encoded = row_quantizer("polarquant", 128, 4, {.seed = test_seed}).encode(gaussian(128, 128, 2));
    EXPECT_EQ(encoded.ledger.total(), 3.875 * 128 * 128);
    EXPECT_EQ(encoded.ledger.bits(Item::norms), 128U * 8 * 16);
}

TEST(Polarquant, AnglesByHand) {
    // Two coordinates: a radius and one angle of 3 bits, with bins of 45 degrees.
    const RowQuantizer quantizer =
        row_quantizer("polarquant", 2, 3, {.rotation = RotationKind::identity, .norm = NumberFormat::fp64});
    const arma::mat row = {{-3.0, 4.0}};
    const Encoded encoded = quantizer.encode(row);
    BitReader reader(encoded.bytes);
    EXPECT_EQ(decode_number(reader.read(64), NumberFormat::fp64), 5.0);
    EXPECT_EQ(reader.read(3), 6U) << "126.87 degrees lie in the cell from 90 to 135";
    const arma::mat decoded = quantizer.decode(encoded.bytes, 1);
    EXPECT_NEAR(decoded(0, 0), 5.0 * std::cos(112.5 * pi / 180.0), 1e-12);
    EXPECT_NEAR(decoded(0, 1), 5.0 * std::sin(112.5 * pi / 180.0), 1e-12);
}

}  // namespace
}  // namespace spiked::estimators
