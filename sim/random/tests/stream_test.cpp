#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>
#include <set>

#include "core/runtime/error.hpp"
#include "sim/random/element_engine.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::stream {
namespace {

TEST(PhiloxReference, AgreesWithRandom123WordForWord) {
    PhiloxCounter counter{1, 2, 3, 4};
    PhiloxKey key{5, 6};
    for (int i = 0; i < 1000; ++i) {
        const auto expected =
            r123::Philox4x32()({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
        const auto found = philox_4x32_10(counter, key);
        for (std::size_t w = 0; w < 4; ++w) ASSERT_EQ(found[w], expected[w]) << "round " << i;
        counter = found;
        key = {found[1] ^ key[0], found[2] + 1};
    }
}

TEST(PhiloxReference, MatchesThePublishedKnownAnswers) {
    EXPECT_EQ(philox_4x32_10({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox_4x32_10({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
              (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(StudySeed, ParsesItsOwnText) {
    EXPECT_EQ(test_seed.text(), "0x5eed0000000000000000000000000007");
    EXPECT_EQ(StudySeed::parse("0x1f").text(), "0x0000000000000000000000000000001f");
    EXPECT_EQ(StudySeed::parse(test_seed.text()).bytes, test_seed.bytes);
}

TEST(StudySeed, RejectsInvalidText) {
    for (const char* text : {"", "0x", "0xg", "seed", "0x123456789012345678901234567890123"})
        EXPECT_THROW((void)StudySeed::parse(text), Error) << text;
}

TEST(StreamAddress, EveryPartOfTheAddressChangesTheWords) {
    const Stream base(test_seed, "cell", Role::noise, 0);
    std::set<PhiloxCounter> seen;
    seen.insert(base.words(0));
    seen.insert(base.words(1));
    seen.insert(base.words(0, 1));
    seen.insert(Stream(test_seed, "cell", Role::noise, 1).words(0));
    seen.insert(Stream(test_seed, "cell", Role::noise, 1ULL << 32).words(0));
    seen.insert(Stream(test_seed, "cell", Role::rotation, 0).words(0));
    seen.insert(Stream(test_seed, "other", Role::noise, 0).words(0));
    seen.insert(Stream(StudySeed::parse("0x1"), "cell", Role::noise, 0).words(0));
    EXPECT_EQ(seen.size(), 8U);
}

TEST(StreamAddress, KeyIsTheFirst64BitsOfTheHashOfSeedAndCell) {
    // python3: sha256(bytes.fromhex('5eed0000000000000000000000000007') + sha256(b'cell').digest()).digest()[:8]
    EXPECT_EQ(Stream(test_seed, "cell", Role::noise, 0).key(), (PhiloxKey{0xfbf50200, 0x5058db45}));
}

TEST(ElementEngine, FeedsBoostRandomFromItsOwnSubStream) {
    const Stream stream(test_seed, "boost", Role::noise, 0);
    double sum = 0.0;
    double sum_of_squares = 0.0;
    constexpr int count = 200000;
    for (std::uint32_t e = 0; e < count; ++e) {
        ElementEngine engine(stream, e);
        const double v = boost::random::normal_distribution<double>()(engine);
        sum += v;
        sum_of_squares += v * v;
    }
    EXPECT_LT(std::abs(sum / count), two_sided_z(2) / std::sqrt(count));
    EXPECT_LT(std::abs(sum_of_squares / count - 1.0), two_sided_z(2) * std::sqrt(2.0 / count));
}

TEST(ElementEngine, UsesAllDrawsOfOneElementAndThrowsAtTheEnd) {
    const Stream stream(test_seed, "walk", Role::noise, 0);
    ElementEngine engine(stream, 7);
    for (std::uint16_t draw = 0; draw < 3; ++draw)
        for (const auto word : stream.words(7, draw)) EXPECT_EQ(engine(), word);
    for (int i = 12; i < 4 << 16; ++i) (void)engine();
    EXPECT_THROW((void)engine(), Error);
}

TEST(HaarFrame, IsOrthonormal) {
    const arma::mat frame = haar_frame(Stream(test_seed, "frame", Role::rotation, 0), 40, 7);
    EXPECT_LT(arma::abs(frame.t() * frame - arma::eye(7, 7)).max(), 40 * 2.3e-16);
}

// For a Haar rotation of dimension d: E q_ij = 0, E q_ij^2 = 1/d, E q_ij^4 = 3/(d(d+2)). The negative control below
// leaves out the sign correction, so that the leading entry of the first column always has the same sign.
TEST(HaarFrameLaw, EntriesHaveTheMomentsOfTheHaarMeasure) {
    constexpr int d = 5;
    constexpr int count = 20000;
    arma::mat mean(d, d), square(d, d);
    for (std::uint64_t r = 0; r < count; ++r) {
        const arma::mat q = haar_frame(Stream(test_seed, "moments", Role::rotation, r), d, d);
        mean += q / count;
        square += q % q / count;
    }
    const double z = two_sided_z(2.0 * d * d);
    const double fourth = 3.0 / (d * (d + 2.0));
    EXPECT_LT(arma::abs(mean).max(), z * std::sqrt(1.0 / d / count));
    EXPECT_LT(arma::abs(square - 1.0 / d).max(), z * std::sqrt((fourth - 1.0 / (d * d)) / count));
}

TEST(HaarFrameControl, WithoutTheSignCorrectionTheMeanIsNotZero) {
    constexpr int d = 5;
    constexpr int count = 2000;
    arma::mat mean(d, d);
    for (std::uint64_t r = 0; r < count; ++r) {
        arma::mat gaussian(d, d), q, triangle;
        fill_normal(Stream(test_seed, "moments", Role::rotation, r), {gaussian.memptr(), gaussian.n_elem});
        arma::qr_econ(q, triangle, gaussian);
        mean += q / count;
    }
    EXPECT_GT(arma::abs(mean).max(), two_sided_z(2.0 * d * d) * std::sqrt(1.0 / d / count));
}

}  // namespace
}  // namespace spiked::stream
