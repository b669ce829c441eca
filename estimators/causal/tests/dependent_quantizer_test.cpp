#include "estimators/causal/dependent_quantizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

std::vector<double> normals(std::size_t count, const char* cell) {
    std::vector<double> found(count);
    fill_normal(stream::Stream(stream::StudySeed::parse("0x2C"), cell, stream::Role::noise, 0), found);
    return found;
}

/// The level of index k for a state (x, y, z) of three bits, written from the definition: the first bit chooses the
/// quantizer; then x' = y + x, y' = z + parity, z' = x.
double walk_trellis(int& x, int& y, int& z, int k, double& bits, const IndexModel& model, std::uint8_t index_class) {
    const double level = x == 0 ? 2.0 * k : 2.0 * k - (k > 0) + (k < 0);
    bits += model.cost(x == 0 ? Levels::even : Levels::odd, index_class, std::abs(k));
    const int parity = std::abs(k) % 2;
    const int old = x;
    x = y ^ x;
    y = z ^ parity;
    z = old;
    return level;
}

TEST(DependentQuantizerReference, FindsTheBestOfAllShortSequences) {
    constexpr std::size_t length = 5;
    constexpr int side = 3;
    IndexModel model(true);
    model.update_costs();
    DependentQuantizer quantizer(true);
    const auto draws = normals(40 * length, "trellis");
    for (std::size_t trial = 0; trial < 40; ++trial) {
        std::vector<double> residuals(draws.begin() + trial * length, draws.begin() + (trial + 1) * length);
        std::vector<std::uint8_t> classes;
        for (std::size_t i = 0; i < length; ++i) {
            residuals[i] = std::clamp(residuals[i] * (1.0 + 0.4 * static_cast<double>(i)), -5.0, 5.0);
            classes.push_back(static_cast<std::uint8_t>(9 + 2 * i));
        }
        const auto state = static_cast<std::uint8_t>(trial % 8);
        const double lambda = trial % 3 == 0 ? 0.0 : 0.3;
        const auto cost_of = [&](const std::vector<int>& ks) {
            int x = state & 1;
            int y = state >> 1 & 1;
            int z = state >> 2 & 1;
            double cost = 0.0;
            for (std::size_t i = 0; i < length; ++i) {
                double bits = 0.0;
                const double error = residuals[i] - walk_trellis(x, y, z, ks[i], bits, model, classes[i]);
                cost += error * error + lambda * bits;
            }
            return cost;
        };
        double least = 1e300;
        std::vector<int> ks(length, -side);
        for (;;) {
            least = std::min(least, cost_of(ks));
            std::size_t i = 0;
            while (i < length && ++ks[i] > side) ks[i++] = -side;
            if (i == length) break;
        }
        std::vector<std::int64_t> found(length);
        quantizer.search(residuals, classes, model, lambda, state, found);
        EXPECT_NEAR(cost_of(std::vector<int>(found.begin(), found.end())), least, 1e-9) << trial;
    }
}

TEST(DependentQuantizer, TheTwoQuantizersTogetherReachEveryMultipleOfTheStep) {
    EXPECT_EQ(DependentQuantizer::level(Levels::even, -3), -6);
    EXPECT_EQ(DependentQuantizer::level(Levels::odd, -3), -5);
    EXPECT_EQ(DependentQuantizer::level(Levels::odd, 0), 0);
    EXPECT_EQ(DependentQuantizer::level(Levels::odd, 1), 1);
    EXPECT_EQ(DependentQuantizer::level(Levels::plain, 7), 7);
    const DependentQuantizer plain(false);
    EXPECT_EQ(plain.next(0, 3), 0);
    EXPECT_EQ(plain.levels(0), Levels::plain);
}

/// Mean square error and ideal bits of normals at a step, coded one long sequence after the other.
std::pair<double, double> rate_and_error(bool dependent, double step, double lambda) {
    const auto draws = normals(40000, "gain");
    IndexModel model(true);
    DependentQuantizer quantizer(dependent);
    RangeEncoder encoder;
    constexpr std::size_t length = 64;
    std::vector<std::int64_t> ks(length);
    std::vector<double> residuals(length);
    const std::vector<std::uint8_t> classes(length, IndexModel::class_of(dependent, 1.0 / (step * step)));
    std::uint8_t state = 0;
    double error = 0.0;
    for (std::size_t at = 0; at + length <= draws.size(); at += length) {
        for (std::size_t i = 0; i < length; ++i) residuals[i] = draws[at + i] / step;
        model.update_costs();
        quantizer.search(residuals, classes, model, lambda, state, ks);
        for (std::size_t i = 0; i < length; ++i) {
            const Levels levels = quantizer.levels(state);
            const double left = step * (residuals[i] - static_cast<double>(DependentQuantizer::level(levels, ks[i])));
            error += left * left;
            model.encode(encoder, levels, classes[i], ks[i]);
            state = quantizer.next(state, ks[i]);
        }
    }
    const double count = static_cast<double>(draws.size());
    return {error / count, 8.0 * static_cast<double>(encoder.finish().size()) / count};
}

TEST(DependentQuantizerLaw, GainsOverScalarQuantizationOfNormals) {
    // 10 log10 of error 4^bits, the loss to the rate-distortion function of a normal. Entropy-coded uniform
    // quantization loses 1.53 dB at high rates and about 1.2 dB at 2 bits with a search; 8 states gain up to .9 dB of
    // that.
    const auto loss = [](bool dependent, double step, double lambda) {
        const auto [error, bits] = rate_and_error(dependent, step, lambda);
        EXPECT_GT(bits, 1.5);
        EXPECT_LT(bits, 3.5);
        return 10.0 * std::log10(error * std::pow(4.0, bits));
    };
    const double plain = loss(false, 0.6, 0.12);
    const double dependent = loss(true, 0.45, 0.3);
    EXPECT_GT(plain, 1.0);
    EXPECT_LT(plain, 1.6);
    EXPECT_GT(dependent, 0.3);
    EXPECT_LT(dependent, plain - 0.5);
}

TEST(IndexModel, DecodesIndicesOfAllSizesInAllClasses) {
    std::vector<std::int64_t> ks;
    for (int octave = 0; octave < 41; ++octave)
        for (const std::int64_t k : {std::int64_t{1} << octave, -(std::int64_t{1} << octave) - 1}) ks.push_back(k);
    ks.push_back(0);
    ks.push_back(IndexModel::largest - 1);
    for (const auto levels : {Levels::plain, Levels::even, Levels::odd}) {
        IndexModel written(true);
        IndexModel read(true);
        RangeEncoder encoder;
        for (std::uint8_t index_class = 0; index_class < 105; ++index_class)
            for (const std::int64_t k : ks) written.encode(encoder, levels, index_class, k);
        const auto bytes = encoder.finish();
        RangeDecoder decoder(bytes);
        for (std::uint8_t index_class = 0; index_class < 105; ++index_class)
            for (const std::int64_t k : ks) ASSERT_EQ(read.decode(decoder, levels, index_class), k);
        decoder.require_end();
    }
}

TEST(IndexModelReference, ClassesAreQuarterOctavesOfTheSize) {
    // Expected size of an index, in units of the distance of two levels: 2 D, or D without dependent quantization.
    for (double size = 0.12; size < 1e6; size *= 1.07) {
        const int expected = std::min(13 + static_cast<int>(std::floor(4.0 * std::log2(size))), 104);
        EXPECT_EQ(IndexModel::class_of(false, size * size), expected) << size;
        EXPECT_EQ(IndexModel::class_of(true, 4.0 * size * size), expected) << size;
    }
    EXPECT_EQ(IndexModel::class_of(true, 0.0), 0);
    EXPECT_EQ(IndexModel::class_of(true, 1e300), 104);
}

/// Coded size of normals of a known size, against the entropy of their cells.
TEST(IndexModelReference, CodesNormalsNearTheirEntropy) {
    for (const double size : {0.3, 1.0, 5.0, 100.0, 5000.0}) {
        IndexModel model(true);
        RangeEncoder encoder;
        const std::uint8_t index_class = IndexModel::class_of(false, size * size);
        const auto draws = normals(20000, "entropy");
        for (const double draw : draws)
            model.encode(encoder, Levels::plain, index_class, static_cast<std::int64_t>(std::nearbyint(size * draw)));
        double entropy = 0.0;
        for (double k = -std::ceil(9.0 * size); k <= 9.0 * size; k += 1.0) {
            const double mass = 0.5 * (std::erf((k + 0.5) / size * M_SQRT1_2) - std::erf((k - 0.5) / size * M_SQRT1_2));
            if (mass > 0.0) entropy -= mass * std::log2(mass);
        }
        EXPECT_NEAR(8.0 * static_cast<double>(encoder.finish().size()) / 20000.0, entropy, 0.03) << size;
    }
}

}  // namespace
}  // namespace spiked::estimators
