// Curves of reverse water-filling beside measured methods: by hand, on processes whose laws are known, on a dump.
#include "validation/kv/spectrum_references.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::validation {
namespace {

arma::mat normal_rows(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat entries(rows, columns);
    stream::fill_normal(stream::Stream({}, "spectrum references", stream::Role::noise, replicate),
                        std::span<double>(entries.memptr(), entries.n_elem));
    return entries;
}

TEST(SpectrumReferences, OfTwoComponentsByHand) {
    // Coordinates 4 and 1 in patterns that are orthogonal and of mean 0, rotated by 30 degrees.
    arma::mat coordinates(16, 2);
    for (arma::uword t = 0; t < 16; ++t) {
        coordinates(t, 0) = t % 4 < 2 ? 4.0 : -4.0;
        coordinates(t, 1) = t % 8 < 4 ? 1.0 : -1.0;
    }
    const double c = std::sqrt(3.0) / 2.0;
    const arma::mat rotated = coordinates * arma::mat{{c, 0.5}, {-0.5, c}};
    // 3 bits for both: either has the error 1/2. 1 bit: the larger one has 4, the other keeps 1. The mean square
    // is 8.5.
    const auto errors = water_filled_errors(rotated, {1.5, 0.5});
    ASSERT_EQ(errors.size(), 2U);
    EXPECT_NEAR(errors[0][0], std::sqrt(0.5 / 8.5), 1e-12);
    EXPECT_NEAR(errors[0][1], std::sqrt(2.5 / 8.5), 1e-12);
    // A mean takes no bits, and is a part of the rows whose error is measured.
    const auto shifted = water_filled_errors(rotated + 3.0, {1.5});
    EXPECT_NEAR(shifted[0][0], std::sqrt(0.5 / 17.5), 1e-12);
}

TEST(SpectrumReferencesLaw, OfProcessesOfFirstOrderAndAControlInAnotherOrder) {
    constexpr std::size_t tokens = 6000;
    constexpr std::size_t channels = 4;
    const arma::vec deviations = {4.0, 2.0, 1.0, 1.0};
    constexpr double correlation = 0.8;
    arma::mat rows = normal_rows(tokens, channels, 0);
    for (std::size_t t = 1; t < tokens; ++t)
        rows.row(t) = correlation * rows.row(t - 1) + std::sqrt(1.0 - correlation * correlation) * rows.row(t);
    rows = rows * arma::diagmat(deviations) * arma::orth(normal_rows(channels, channels, 1));
    // At 4 bits all components and frequencies are coded: the error is the geometric mean of what is left to code. The
    // sample has about tokens (1 - .64) / (1 + .64) independent rows, which makes its variances uncertain by 4 %.
    const double mean_square = arma::mean(arma::square(deviations));
    const double white = std::sqrt(std::pow(4.0 * 2.0, 2.0 / channels) / 256.0 / mean_square);
    const auto errors = water_filled_errors(rows, {4.0});
    EXPECT_NEAR(errors[0][0], white, 0.05 * white);
    EXPECT_NEAR(errors[1][0] / errors[0][0], std::sqrt(1.0 - correlation * correlation), 0.03);
    arma::mat other = rows;
    for (std::size_t t = 0; t < tokens; ++t) other.row(t) = rows.row(t * 2503 % tokens);
    const auto shuffled = water_filled_errors(other, {4.0});
    EXPECT_NEAR(shuffled[0][0], errors[0][0], 1e-12);
    EXPECT_GT(shuffled[1][0], 0.99 * shuffled[0][0]);
}

TEST(SpectrumReferences, AreMeansOverTheHeadsOfADump) {
    KvPlan plan;
    plan.dumps = {SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors"};
    const std::vector<double> bits = {1.0, 3.0};
    const auto references = spectrum_references(plan, bits, 1);
    ASSERT_EQ(references.size(), 4U);
    for (const auto& reference : references) {
        ASSERT_EQ(reference.points.size(), 2U);
        EXPECT_EQ(reference.points[1].bits, 3.0);
        // Two bits more are at most a factor of 4, and at least the 2 of a component that begins to be coded.
        EXPECT_LT(reference.points[1].error, reference.points[0].error / 2.0);
        EXPECT_GE(reference.points[1].error, reference.points[0].error / 16.0);
    }
    for (const std::size_t white : {0, 2}) {
        EXPECT_EQ(references[white].name, "water-filling");
        EXPECT_EQ(references[white + 1].name, "water-filling+ar");
        EXPECT_LT(references[white + 1].points[0].error, references[white].points[0].error);
    }
    EXPECT_EQ(references[0].side, "key");
    EXPECT_EQ(references[2].side, "value");
    const sim::KvDump dump(plan.dumps.front());
    double sum = 0.0;
    int heads = 0;
    for (const auto& tensor : dump.tensors())
        for (std::size_t h = 0; tensor.side == sim::Side::value && h < tensor.heads; ++h, ++heads)
            sum += water_filled_errors(dump.read_block(tensor, h, 1, tensor.tokens - 1), {3.0})[0][0];
    EXPECT_NEAR(references[2].points[1].error, sum / heads, 1e-12);
    // The rotary embedding spreads the variances of keys, so that taking it off helps.
    sum = 0.0;
    for (const auto& tensor : dump.tensors())
        for (std::size_t h = 0; tensor.side == sim::Side::key && h < tensor.heads; ++h)
            sum += water_filled_errors(dump.read_block(tensor, h, 1, tensor.tokens - 1), {3.0})[0][0];
    EXPECT_LT(references[0].points[1].error, 0.9 * sum / heads);
}

TEST(SpectrumReferences, OfZerosOneTokenAndNaN) {
    EXPECT_TRUE(water_filled_errors(arma::mat(5, 3, arma::fill::zeros), {2.0}).empty());
    EXPECT_TRUE(water_filled_errors(arma::mat(1, 3, arma::fill::ones), {2.0}).empty());
    // Equal rows have nothing to code.
    EXPECT_EQ(water_filled_errors(arma::mat(5, 3, arma::fill::ones), {2.0})[0][0], 0.0);
    arma::mat rows(5, 3, arma::fill::ones);
    rows(2, 1) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW((void)water_filled_errors(rows, {2.0}), Error);
}

}  // namespace
}  // namespace spiked::validation
