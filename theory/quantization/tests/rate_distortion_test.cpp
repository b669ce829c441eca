#include "theory/quantization/rate_distortion.hpp"

#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <vector>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;
using test::expect_relative;
using test::infinite;
using test::not_a_number;

double density(double x) { return std::exp(-x * x / 2.0) / std::sqrt(2.0 * std::acos(-1.0)); }

/// The squared error of the uniform mid-rise quantizer, integrated bin by bin.
double uniform_distortion(double step, int bits) {
    using Rule = boost::math::quadrature::gauss<double, 20>;
    const int half = 1 << (bits - 1);
    double sum = 0.0;
    for (int k = 0; k < half; ++k) {
        const double level = (k + 0.5) * step;
        const auto error = [&](double x) { return (x - level) * (x - level) * density(x); };
        const double end = k + 1 == half ? k * step + 12.0 : (k + 1) * step;
        const int panels = k + 1 == half ? 12 : 4;
        const double width = (end - k * step) / panels;
        for (int i = 0; i < panels; ++i)
            sum += 2.0 * Rule::integrate(error, k * step + i * width, k * step + (i + 1) * width);
    }
    return sum;
}

/// Entropy and distortion, computed from differences of closed forms in extended precision.
struct ClosedForm {
    double rate = 0.0;
    double distortion = 0.0;
};

ClosedForm closed_form(long double step, Staircase staircase) {
    const long double root = std::sqrt(2.0L);
    const long double peak = 1.0L / std::sqrt(2.0L * std::acos(-1.0L));
    long double rate = 0.0L;
    long double gain = 0.0L;
    long double lower = 0.0L;
    if (staircase == Staircase::mid_tread) {
        lower = step / 2.0L;
        const long double mass = std::erf(lower / root);
        rate -= mass * std::log2(mass);
    }
    for (;; lower += step) {
        const long double mass = (std::erfc(lower / root) - std::erfc((lower + step) / root)) / 2.0L;
        if (mass < 1e-25L) break;
        const long double moment =
            peak * (std::exp(-lower * lower / 2.0L) - std::exp(-(lower + step) * (lower + step) / 2.0L));
        rate -= 2.0L * mass * std::log2(mass);
        gain += 2.0L * moment * moment / mass;
    }
    return {static_cast<double>(rate), static_cast<double>(1.0L - gain)};
}

TEST(RateDistortion, ShannonBoundAndItsInverse) {
    EXPECT_EQ(shannon_distortion(1.0), 0.25);
    EXPECT_EQ(shannon_distortion(2.0), 0.0625);
    EXPECT_EQ(shannon_distortion(0.5), 0.5);
    EXPECT_EQ(shannon_rate(0.25), 1.0);
    EXPECT_EQ(shannon_rate(1.0), 0.0);
    EXPECT_EQ(shannon_rate(3.0), 0.0) << "an error above the variance needs no bits";
    for (double rate = 0.01; rate < 40.0; rate *= 1.7)
        EXPECT_NEAR(shannon_rate(shannon_distortion(rate)), rate, 1e-15 * (1.0 + rate));
}

TEST(RateDistortion, LloydMaxApproachesPanterAndDiteFromBelow) {
    EXPECT_NEAR(panter_dite_constant, 2.720699046351327, 1e-15);  // not sqrt(3 pi) / 2
    double before = 0.0;
    double gap = 0.0;
    for (int bits = 1; bits <= 8; ++bits) {
        const double scaled = lloyd_max_normal(bits).distortion / shannon_distortion(bits);
        EXPECT_GT(scaled, before);
        EXPECT_LT(scaled, panter_dite_constant);
        if (bits > 5) {
            EXPECT_NEAR((panter_dite_constant - scaled) / gap, 0.5, 0.03) << bits;
        }
        gap = panter_dite_constant - scaled;
        before = scaled;
    }
    EXPECT_NEAR(8.0 - shannon_rate(lloyd_max_normal(8).distortion), 0.5 * std::log2(2.69911), 1e-5);
}

TEST(RateDistortion, EntropyCodedTableMatchesTheBetterStaircase) {
    const double table[][3] = {{1.0, 0.34834, 5e-6},   {1.5, 0.17767, 5e-6},  {2.0, 0.088941, 5e-7},
                               {2.25, 0.062898, 6e-7}, {2.5, 0.044477, 5e-7}, {3.0, 0.022239, 5e-7},
                               {4.0, 0.0055597, 5e-8}};
    for (const auto& [rate, distortion, digit] : table) {
        const EntropyCodedQuantizer found = entropy_coded_normal_at_rate(rate);
        EXPECT_NEAR(found.distortion, distortion, digit) << rate;
        EXPECT_NEAR(found.rate_bits, rate, 1e-14);
    }
    EXPECT_EQ(entropy_coded_normal_at_rate(1.0).staircase, Staircase::mid_tread);
    EXPECT_EQ(entropy_coded_normal_at_rate(1.5).staircase, Staircase::mid_rise);
    // At 1.5 bits the two staircases differ in the printed digits: mid-tread alone gives 0.17770.
    const auto tread_error = [](double step) {
        return entropy_coded_normal(step, Staircase::mid_tread).rate_bits - 1.5;
    };
    EXPECT_NEAR(tread_error(1.61009599160535), 0.0, 1e-13);
    EXPECT_NEAR(entropy_coded_normal(1.61009599160535, Staircase::mid_tread).distortion, 0.177703159253468, 1e-14);
}

TEST(RateDistortion, EntropyCodedMatchesThirtyDigits) {
    // Computed with mpmath in 30 digits from differences of erfc, with the step by the secant method.
    const double table[][3] = {
        {0.05, 5.62027638509435, 0.95218903679197727298},   {0.5, 3.45617791808057, 0.61733665373500732491},
        {1.0, 2.42161945543186, 0.34833863751159296769},    {1.1, 2.24211013590708, 0.30613750334141877078},
        {1.5, 1.61283392902904, 0.17766730727648066028},    {2.0, 1.08244672490204, 0.088941211573944884455},
        {2.5, 0.747380457222551, 0.044476868873798083663},  {4.0, 0.259016743858046, 0.005559722572841610826},
        {6.0, 0.0645851494933768, 0.0003474826750727375501}};
    for (const auto& [rate, step, distortion] : table) {
        const EntropyCodedQuantizer found = entropy_coded_normal_at_rate(rate);
        expect_relative(found.step, step, 1e-13, "step");
        expect_relative(found.distortion, distortion, 1e-13, "distortion");
    }
}

TEST(RateDistortion, EntropyCodedBinsMatchClosedForms) {
    for (const Staircase staircase : {Staircase::mid_tread, Staircase::mid_rise}) {
        for (double step = 0.02; step < 8.0; step *= 1.31) {
            const ClosedForm expected = closed_form(step, staircase);
            const EntropyCodedQuantizer found = entropy_coded_normal(step, staircase);
            expect_relative(found.rate_bits, expected.rate, 1e-13, "rate");
            // The closed form of 1 - gain suffers from cancellation.
            EXPECT_NEAR(found.distortion, expected.distortion, 1e-14 * expected.distortion + 1e-16) << step;
        }
    }
    // With a very large step, mid-tread sends nothing and mid-rise sends the sign.
    EXPECT_EQ(entropy_coded_normal(1e6, Staircase::mid_tread).rate_bits, 0.0);
    EXPECT_NEAR(entropy_coded_normal(1e6, Staircase::mid_tread).distortion, 1.0, 1e-14);
    EXPECT_NEAR(entropy_coded_normal(1e6, Staircase::mid_rise).rate_bits, 1.0, 1e-14);
    EXPECT_NEAR(entropy_coded_normal(1e6, Staircase::mid_rise).distortion, 1.0 - 2.0 / std::acos(-1.0), 1e-14);
}

TEST(RateDistortion, EntropyCodedDistortionApproachesTheHighRateLimit) {
    const double limit = std::acos(-1.0) * std::exp(1.0) / 6.0;  // limit of distortion * 4^rate (Gish and Pierce 1968)
    double before = 1.0;
    double scaled_before = 1.0;
    for (double rate = 0.01; rate <= 10.0; rate += 0.0999) {
        const EntropyCodedQuantizer found = entropy_coded_normal_at_rate(rate);
        EXPECT_NEAR(found.rate_bits, rate, 1e-13 * (1.0 + rate));
        EXPECT_LT(found.distortion, before) << rate;
        EXPECT_GT(found.distortion, shannon_distortion(rate)) << rate;
        const double scaled = found.distortion / shannon_distortion(rate);
        EXPECT_GT(scaled, scaled_before - 1e-12) << "the loss grows with the rate, at " << rate;
        EXPECT_LT(scaled, limit + 1e-12);
        before = found.distortion;
        scaled_before = scaled;
    }
    EXPECT_NEAR(10.0 - shannon_rate(entropy_coded_normal_at_rate(10.0).distortion), 0.254614, 1e-6);
}

TEST(RateDistortion, MidTreadIsBetterBelowTheCrossoverAndMidRiseAbove) {
    const double crossover = 1.3547695;
    EXPECT_EQ(entropy_coded_normal_at_rate(crossover - 1e-4).staircase, Staircase::mid_tread);
    EXPECT_EQ(entropy_coded_normal_at_rate(crossover + 1e-4).staircase, Staircase::mid_rise);
    const double gap = entropy_coded_normal_at_rate(crossover - 1e-7).distortion -
                       entropy_coded_normal_at_rate(crossover + 1e-7).distortion;
    EXPECT_NEAR(gap, 0.0, 2e-7) << "the curve has no jump where the staircase changes";
}

TEST(RateDistortion, EntropyCodingBeatsLloydMaxAtItsOwnEntropy) {
    const double meets[] = {1.7991, 2.6822, 3.6135};
    for (int bits = 2; bits <= 8; ++bits) {
        const Codebook book = lloyd_max_normal(bits);
        EXPECT_LT(entropy_coded_normal_at_rate(book.entropy_bits).distortion, book.distortion) << bits;
        if (bits <= 4) {
            const double rate = meets[bits - 2];
            const double found =
                rate + 0.5 * std::log2(entropy_coded_normal_at_rate(rate).distortion / book.distortion);
            EXPECT_NEAR(found, rate, 6e-5) << bits;
        }
    }
}

TEST(RateDistortion, UniformStepsMatchTheTable) {
    EXPECT_NEAR(uniform_quantizer_normal(1).step, 2.0 * std::sqrt(2.0 / std::acos(-1.0)), 1e-15);
    expect_relative(uniform_quantizer_normal(1).codebook.distortion, lloyd_max_normal(1).distortion, 1e-14, "1 bit");
    // Steps and distortions were computed with mpmath in 30 digits. The table of the note agrees to 2e-8 in the step
    // and to its last digit in the distortion.
    const double table[][5] = {{2, 0.995686685943506312, 0.118846050384077205, 0.9956866699, 0.118846050},
                               {3, 0.586019441443486986, 0.0374396593915235321, 0.5860194502, 0.037439659},
                               {4, 0.335200612199972692, 0.0115428844313508994, 0.3352006168, 0.011542884},
                               {8, 0.0307623875823246094, 0.0000876861857840937624, 0.0307623873, 8.7686e-5}};
    for (const auto& [bits, step, distortion, note_step, note_distortion] : table) {
        const UniformQuantizer found = uniform_quantizer_normal(static_cast<int>(bits));
        expect_relative(found.step, step, 1e-14, "step");
        expect_relative(found.codebook.distortion, distortion, 1e-13, "distortion");
        expect_relative(found.step, note_step, 2e-8, "step of the note");
        expect_relative(found.codebook.distortion, note_distortion, 1e-5, "distortion of the note");
    }
}

TEST(RateDistortion, UniformStepsMinimiseTheIntegratedError) {
    for (int bits = 1; bits <= 8; ++bits) {
        const UniformQuantizer found = uniform_quantizer_normal(bits);
        const double least = uniform_distortion(found.step, bits);
        expect_relative(found.codebook.distortion, least, 1e-11, "integrated error");
        for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
            EXPECT_GT(uniform_distortion(factor * found.step, bits), least * (1.0 + 1e-6)) << bits << " " << factor;
        EXPECT_GE(found.codebook.distortion, lloyd_max_normal(bits).distortion * (1.0 - 1e-13));
    }
}

TEST(RateDistortion, UniformCodebookIsConsistent) {
    for (int bits = 1; bits <= 8; ++bits) {
        const auto& [step, book] = uniform_quantizer_normal(bits);
        const std::size_t count = std::size_t{1} << bits;
        ASSERT_EQ(book.levels.size(), count);
        ASSERT_EQ(book.thresholds.size(), count - 1);
        EXPECT_EQ(book.bits, bits);
        double total = 0.0;
        double entropy = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT_EQ(book.levels[i], -book.levels[count - 1 - i]);
            total += book.probabilities[i];
            entropy -= book.probabilities[i] * std::log2(book.probabilities[i]);
            if (i + 1 < count) {
                EXPECT_NEAR(book.levels[i + 1] - book.levels[i], step, 1e-14);
                EXPECT_NEAR(book.thresholds[i], (book.levels[i] + book.levels[i + 1]) / 2.0, 1e-15);
            }
        }
        EXPECT_NEAR(total, 1.0, 1e-14);
        EXPECT_NEAR(book.entropy_bits, entropy, 1e-13);
        EXPECT_NEAR(book.linear_gain, 1.0 - book.distortion, 1e-14);
    }
}

TEST(WaterFilling, FillsTheWeakestChannelsByHand) {
    const auto error = [](const std::vector<NormalChannel>& channels, double bits) {
        return water_filled_distortion(channels, bits);
    };
    // 3 bits for two channels: both have the error 4 / 8. 1 bit: the first has 16 / 4, the other keeps its variance.
    expect_relative(error({{16.0}, {1.0}}, 1.5), 0.5, 1e-14, "both coded");
    expect_relative(error({{1.0}, {16.0}}, 0.5), 2.5, 1e-14, "one coded");
    expect_relative(error({{3.0}, {3.0}, {3.0}}, 2.0), 3.0 * shannon_distortion(2.0), 1e-14, "equal channels");
    EXPECT_EQ(error({{0.0}, {0.0}}, 1.0), 0.0);
    // Half the entries are known: all bits go to the others.
    expect_relative(error({{2.0}, {0.0}}, 1.0), 2.0 / 16.0 / 2.0, 1e-14, "a channel without variance");
    // Above the weakest frequency the error is that of the innovation.
    expect_relative(error({{5.0, 0.5}}, 3.0), 5.0 * 0.75 / 64.0, 1e-12, "prediction");
    expect_relative(error({{5.0, 0.5}, {5.0, -0.5}}, 3.0), 5.0 * 0.75 / 64.0, 1e-12, "either sign");
    EXPECT_LT(error({{5.0, 0.9}}, 0.5), error({{5.0}}, 0.5));
}

// Rate and error at a level of the water, integrated over the frequencies on either side of where it meets the
// spectrum.
TEST(WaterFilling, AgreesWithIntegralsOverFrequencies) {
    const double pi = std::acos(-1.0);
    for (const double r : {0.3, 0.9})
        for (const double share : {0.2, 0.7}) {
            const auto power = [&](double w) { return (1.0 - r * r) / (1.0 - 2.0 * r * std::cos(w) + r * r); };
            const double meets = share * pi;
            const double level = power(meets);
            using Rule = boost::math::quadrature::gauss<double, 30>;
            double rate = 0.0;
            double error = level * share;
            for (int i = 0; i < 8; ++i) {
                const double step = meets / 8;
                const double other = (pi - meets) / 8;
                rate += Rule::integrate([&](double w) { return 0.5 * std::log2(power(w) / level); }, i * step,
                                        (i + 1) * step) /
                        pi;
                error += Rule::integrate(power, meets + i * other, meets + (i + 1) * other) / pi;
            }
            expect_relative(water_filled_distortion(std::vector<NormalChannel>{{1.0, r}}, rate), error, 1e-3, "error");
        }
}

TEST(WaterFilling, RejectsWhatIsNoSource) {
    const auto rejected = [](const std::vector<NormalChannel>& channels, double bits, const char* says) {
        expect_rejected([&] { (void)water_filled_distortion(channels, bits); }, says);
    };
    rejected({}, 1.0, "without channels");
    rejected({{1.0}}, 0.0, "rate of");
    for (const NormalChannel channel :
         {NormalChannel{-1.0}, {not_a_number}, {infinite}, {1.0, 1.0}, {1.0, not_a_number}})
        rejected({channel}, 1.0, "a channel has");
}

TEST(RateDistortion, RejectsArgumentsOutsideItsDomain) {
    for (const double rate : {0.0, -1.0, not_a_number, infinite, -infinite}) {
        expect_rejected([&] { (void)shannon_distortion(rate); }, "rate of");
        expect_rejected([&] { (void)entropy_coded_normal_at_rate(rate); }, "out of range");
        expect_rejected([&] { (void)shannon_rate(rate); }, "distortion");
        expect_rejected([&] { (void)entropy_coded_normal(rate, Staircase::mid_rise); }, "step");
    }
    expect_rejected([] { (void)entropy_coded_normal_at_rate(0.0099); }, "0.01 to 10");
    expect_rejected([] { (void)entropy_coded_normal_at_rate(10.1); }, "0.01 to 10");
    expect_rejected([] { (void)entropy_coded_normal(1e-4, Staircase::mid_tread); }, "step");
    for (const int bits : {0, -1, 9}) expect_rejected([&] { (void)uniform_quantizer_normal(bits); }, "1 to 8");
}

}  // namespace
}  // namespace spiked::theory
