#include "estimators/quantizers/rabitq.hpp"

#include <gtest/gtest.h>

#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

const QuantizerOptions unrotated = {.rotation = RotationKind::identity, .norm = NumberFormat::fp64, .seed = test_seed};

TEST(RabitqReference, NoGridDirectionIsNearerInAngle) {
    for (const unsigned bits : {1U, 2U, 3U}) {
        const auto levels = static_cast<std::size_t>(1) << bits;
        for (std::uint64_t draw = 0; draw < 40; ++draw) {
            const arma::mat row = gaussian(1, 4, 10 * draw + bits);
            double best = -1.0;
            arma::mat grid(1, 4);
            for (std::size_t code = 0; code < levels * levels * levels * levels; ++code) {
                std::size_t rest = code;
                for (std::size_t j = 0; j < 4; ++j, rest /= levels)
                    grid(0, j) = static_cast<double>(rest % levels) - 0.5 * static_cast<double>(levels - 1);
                best = std::max(best, arma::dot(grid, row) / (arma::norm(grid) * arma::norm(row)));
            }
            const arma::mat decoded = through(row_quantizer("rabitq", 4, bits, unrotated), row);
            EXPECT_NEAR(arma::dot(decoded, row) / (arma::norm(decoded) * arma::norm(row)), best, 1e-12) << bits;
            // With its length the product of the row with itself is exact; the other lengths are checked against their
            // definitions.
            EXPECT_NEAR(arma::dot(decoded, row), arma::dot(row, row), 1e-12 * arma::dot(row, row));
            const arma::mat closest = through(row_quantizer("rabitq:scale=mmse", 4, bits, unrotated), row);
            EXPECT_NEAR(arma::norm(closest), best * arma::norm(row), 1e-12 * arma::norm(row));
            const arma::mat as_long = through(row_quantizer("rabitq:scale=norm", 4, bits, unrotated), row);
            EXPECT_NEAR(arma::norm(as_long), arma::norm(row), 1e-12 * arma::norm(row));
        }
    }
}

// Figures of an independent prototype at d = 128, accurate to their last digit.
TEST(RabitqLaw, SquaredErrorsAtTwoThreeAndFourBits) {
    const arma::mat rows = gaussian(1000, 128, 2);
    for (const auto& [bits, expected, digit] : {std::tuple{2U, 0.1308, 5e-4}, {3U, 0.0361, 4e-4}, {4U, 0.0099, 2e-4}}) {
        const arma::mat decoded =
            through(row_quantizer("rabitq", 128, bits, {.norm = NumberFormat::fp32, .seed = test_seed}), rows);
        const arma::vec errors = arma::sum(arma::square(decoded - rows), 1) / arma::sum(arma::square(rows), 1);
        const MeanTest found(errors, expected, 3);
        std::cout << bits << " bits: " << found << "\n";
        EXPECT_LE(std::abs(found.deviation), found.limit + digit) << found;
        // Negative control: EDEN's figures, which Lloyd-Max levels reach, at the next width.
        EXPECT_GT(std::abs(found.mean - 1.1 * expected), found.limit + digit);
    }
}

}  // namespace
}  // namespace spiked::estimators
