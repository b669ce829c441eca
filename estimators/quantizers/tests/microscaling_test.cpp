#include "estimators/quantizers/groups/microscaling.hpp"

#include <gtest/gtest.h>

#include "estimators/coding/byte_stream.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

/// Magnitudes as in the tables of the specification, by code.
std::vector<double> printed(unsigned bits) {
    if (bits == 4) return {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    std::vector<double> values;
    if (bits == 6) {
        for (int i = 0; i < 16; ++i) values.push_back(0.125 * i);  // subnormal numbers and [1, 2)
        for (int i = 8; i < 16; ++i) values.push_back(0.25 * i);
        for (int i = 8; i < 16; ++i) values.push_back(0.5 * i);
        return values;
    }
    for (int i = 0; i < 8; ++i) values.push_back(i / 512.0);
    for (int exponent = -6; exponent <= 8; ++exponent)
        for (int i = 0; i < 8 && std::ldexp(1.0 + i / 8.0, exponent) <= 448.0; ++i)
            values.push_back(std::ldexp(1.0 + i / 8.0, exponent));
    return values;
}

/// The nearest of all values by exhaustive search; of two equally near ones the one with the even code.
double by_trying(const std::vector<double>& values, double x) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        const double gain = std::abs(values[best] - std::abs(x)) - std::abs(values[i] - std::abs(x));
        if (gain > 0.0 || (gain == 0.0 && i % 2 == 0)) best = i;
    }
    return x < 0.0 ? -values[best] : values[best];
}

TEST(Microscaling, ElementsAreThoseOfTheSpecificationWithTiesToEven) {
    for (const auto& [bits, count, largest] : {std::tuple{4U, 8U, 6.0}, {6U, 32U, 7.5}, {8U, 127U, 448.0}}) {
        const std::vector<double> values = printed(bits);
        ASSERT_EQ(values.size(), count);
        ASSERT_EQ(values.back(), largest);
        // Every value, every midpoint of two and both sides of it, with both signs; the first entry of a group
        // determines its scale.
        std::vector<double> asked;
        for (std::size_t i = 0; i + 1 < values.size(); ++i) {
            const double middle = 0.5 * (values[i] + values[i + 1]);
            for (const double x : {values[i], middle, middle * (1.0 - 1e-12), middle * (1.0 + 1e-12)})
                asked.insert(asked.end(), {x, -x});
        }
        for (const double scale : {1.0, 0x1p-20, 0x1p+30}) {
            arma::mat rows(asked.size(), 2);
            for (std::size_t i = 0; i < asked.size(); ++i) {
                rows(i, 0) = largest * scale;
                rows(i, 1) = asked[i] * scale;
            }
            const arma::mat back = through(row_quantizer("mx", 2, bits, {}), rows);
            for (std::size_t i = 0; i < asked.size(); ++i) {
                ASSERT_EQ(back(i, 0), largest * scale);
                ASSERT_EQ(back(i, 1), by_trying(values, asked[i]) * scale) << bits << " bits, " << asked[i];
            }
        }
    }
}

TEST(Microscaling, APowerOfTwoClipsEntriesBeyondTheLargestElement) {
    // 7.9 has the exponent of 6, the largest element of 4 bits; 8 has the next scale.
    const RowQuantizer quantizer = row_quantizer("mx", 3, 4, {});
    const arma::mat back = through(quantizer, {{7.9, 1.0, -0.3}, {8.0, 1.0, -0.6}, {0.0, 0.0, 0.0}});
    const arma::mat expected = {{6.0, 1.0, -0.5}, {8.0, 1.0, -1.0}, {0.0, 0.0, 0.0}};
    EXPECT_EQ(arma::abs(back - expected).max(), 0.0);
    // Scales row after row: 2^0, 2^1, and the smallest there is.
    const Encoded encoded = quantizer.encode({{7.9, 1.0, -0.3}, {8.0, 1.0, -0.6}, {0.0, 0.0, 0.0}});
    BitReader reader(encoded.bytes);
    for (const unsigned code : {127U, 128U, 0U}) EXPECT_EQ(reader.read(8), code);
}

TEST(Microscaling, ScalesOfE4m3AreRelativeToALargestOf448) {
    // Groups of 2: the largest group is stored exactly, a group 1/100 as large within the rounding error of E4M3, 2^-4.
    const arma::mat rows = {{6.0, -3.0, 0.06, 0.02}};
    const Encoded encoded = row_quantizer("mx:group=2:scale=e4m3", 4, 4, {}).encode(rows);
    BitReader reader(encoded.bytes);
    const double unit = decode_number(reader.read(32), NumberFormat::fp32);
    EXPECT_NEAR(unit, 1.0 / 448.0, 1e-9);
    EXPECT_EQ(reader.read(8), 126U);  // 448
    const std::uint64_t second = reader.read(8);
    EXPECT_EQ(printed(8)[second], 4.5);  // the nearest of 4, 4.5, 5 to 4.48
    const arma::mat back = through(row_quantizer("mx:group=2:scale=e4m3", 4, 4, {}), rows);
    EXPECT_NEAR(back(0, 0), 6.0, 1e-6);
    EXPECT_NEAR(back(0, 1), -3.0, 1e-6);
    EXPECT_NEAR(back(0, 2), 6.0 * 4.5 / 448.0, 1e-8);
    EXPECT_NEAR(back(0, 3), 2.0 * 4.5 / 448.0, 1e-8);
}

struct Expected {
    const char* name;
    unsigned bits;
    double error;
    double standard_error;
};

// Relative squared errors of normal entries from an independent NumPy program, 330 000 groups.
constexpr Expected simulated[] = {
    {"mx", 4, 0.0132240, 6.1e-6},
    {"mx", 6, 0.00080493, 4.4e-7},
    {"mx", 8, 0.00086074, 1.0e-6},
    {"mx:group=16", 4, 0.0138497, 1.1e-5},
    {"mx:group=16:scale=e4m3", 4, 0.0090467, 5.9e-6},
    {"mx:group=16:scale=e4m3", 6, 0.00066979, 4.2e-7},
    {"mx:group=16:scale=e4m3", 8, 0.00067427, 6.3e-7},
};

arma::vec errors_of(const Expected& one) {
    const RowQuantizer quantizer = row_quantizer(one.name, 32, one.bits, {});
    arma::vec errors(60);
    for (arma::uword i = 0; i < errors.n_elem; ++i) {
        const arma::mat rows = gaussian(128, 32, 500 + i);
        errors[i] = std::pow(relative_error(through(quantizer, rows), rows), 2);
    }
    return errors;
}

MeanTest compared(const arma::vec& errors, const Expected& with) {
    MeanTest test(errors, with.error, std::size(simulated) + 1);
    test.limit += 5.0 * with.standard_error;
    return test;
}

TEST(MicroscalingLaw, ErrorsOfNormalEntriesAreThoseOfAnotherProgram) {
    for (const auto& one : simulated) {
        const MeanTest test = compared(errors_of(one), one);
        std::cout << one.name << " " << one.bits << " bits: " << test << "\n";
        EXPECT_TRUE(test.agrees()) << one.name;
    }
}

TEST(MicroscalingControl, GroupsOfAnotherLengthAreDetected) {
    EXPECT_FALSE(compared(errors_of(simulated[3]), simulated[0]).agrees());
}

TEST(MicroscalingLaw, EightBitsAreNoBetterThanSixAndTurboQuantIsBetterAtFour) {
    const arma::mat rows = gaussian(4096, 32, 1);
    const auto error = [&](const char* name, unsigned bits) {
        return std::pow(relative_error(through(row_quantizer(name, 32, bits, {}), rows), rows), 2);
    };
    // Both have three bits of mantissa, and 448 clips earlier than 480 would.
    EXPECT_GT(error("mx", 8), error("mx", 6));
    // The error of TurboQuant with .125 bits less.
    EXPECT_GT(error("mx", 4), 0.0093);
}

TEST(Microscaling, BytesThatEncodeNanAreRejected) {
    const arma::mat rows = gaussian(2, 4, 1);
    for (const char* name : {"mx", "mx:scale=e4m3"}) {
        const RowQuantizer quantizer = row_quantizer(name, 4, 8, {});
        const std::vector<std::uint8_t> good = quantizer.encode(rows).bytes;
        const std::size_t scales = std::string_view(name) == "mx" ? 0 : 4;
        for (const std::size_t at : {scales, good.size() - 1}) {  // a scale, an element
            std::vector<std::uint8_t> bad = good;
            bad[at] = 0xFF;
            EXPECT_NE(message_of([&] { (void)quantizer.decode(bad, 2); }, ErrorKind::input).find("mx"),
                      std::string::npos);
        }
    }
    std::vector<std::uint8_t> bad = row_quantizer("mx:scale=e4m3", 4, 4, {}).encode(rows).bytes;
    bad[3] = 0x7F;
    bad[2] = 0xC0;  // the block's number: NaN
    EXPECT_NE(message_of([&] { (void)row_quantizer("mx:scale=e4m3", 4, 4, {}).decode(bad, 2); }, ErrorKind::input)
                  .find("block"),
              std::string::npos);
}

TEST(Microscaling, EntriesBeyondAllScalesAreRejectedUnlessTheyMayVanish) {
    const arma::mat tiny(1, 4, arma::fill::value(1e-45));
    const arma::mat huge(1, 4, arma::fill::value(1e60));
    for (const char* name : {"mx", "mx:scale=e4m3"}) {
        message_of([&] { (void)row_quantizer(name, 4, 4, {}).encode(tiny); }, ErrorKind::input);
        message_of([&] { (void)row_quantizer(name, 4, 4, {}).encode(huge); }, ErrorKind::input);
        const RowQuantizer lax = row_quantizer(name, 4, 4, {.underflow = Underflow::allowed});
        EXPECT_LT(arma::abs(through(lax, tiny)).max(), 1e-38) << name;
    }
}

}  // namespace
}  // namespace spiked::estimators
