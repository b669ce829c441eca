#include "estimators/causal/range_coder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "core/runtime/error.hpp"
#include "sim/random/address.hpp"
#include "sim/random/philox.hpp"

namespace spiked::estimators {
namespace {

std::uint32_t word(std::uint32_t i) {
    static const stream::Stream stream(stream::StudySeed::parse("0x2C"), "range coder", stream::Role::noise, 0);
    return stream.words(i)[0];
}

/// Symbols of a geometric law with ratio 1/2 or, in the second half, 7/8.
std::vector<std::uint32_t> geometric_symbols(std::size_t count) {
    std::vector<std::uint32_t> found(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double u = (word(static_cast<std::uint32_t>(i)) + 0.5) * 0x1p-32;
        const double ratio = i < count / 2 ? 0.5 : 0.875;
        found[i] = static_cast<std::uint32_t>(std::min(15.0, std::floor(std::log(u) / std::log(ratio))));
    }
    return found;
}

/// The code length of the model, by its definition, in doubles.
double ideal_count_bits(const std::vector<std::uint32_t>& list, std::uint32_t increment, std::uint32_t limit) {
    std::vector<std::uint32_t> counts(16, 4);
    double bits = 0.0;
    for (const std::uint32_t symbol : list) {
        bits += std::log2(std::accumulate(counts.begin(), counts.end(), 0.0) / counts[symbol]);
        counts[symbol] += increment;
        if (std::accumulate(counts.begin(), counts.end(), 0U) > limit)
            for (std::uint32_t& count : counts) count = (count + 1) / 2;
    }
    return bits;
}

std::vector<std::uint8_t> coded(const std::vector<std::uint32_t>& list) {
    AdaptiveCounts counts(std::vector<std::uint32_t>(16, 4), 24, 5000);
    RangeEncoder encoder;
    for (const std::uint32_t symbol : list) counts.encode(encoder, symbol);
    return encoder.finish();
}

TEST(RangeCoder, DecodesWhatItEncodes) {
    for (const std::size_t count : {0, 1, 2, 3, 100, 20000}) {
        const auto list = geometric_symbols(count);
        const auto bytes = coded(list);
        RangeDecoder decoder(bytes);
        AdaptiveCounts counts(std::vector<std::uint32_t>(16, 4), 24, 5000);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(counts.decode(decoder), list[i]) << i << " of " << count;
        decoder.require_end();
    }
}

TEST(RangeCoderReference, SizeIsTheCodeLengthOfTheModel) {
    const auto list = geometric_symbols(200000);
    const double ideal = ideal_count_bits(list, 24, 5000);
    const double bits = 8.0 * static_cast<double>(coded(list).size());
    EXPECT_GE(bits, ideal);
    EXPECT_LE(bits, ideal * 1.00001 + 16.0);
}

TEST(RangeCoder, CarriesThroughManyBytes) {
    // The last symbol of a wide interval again and again, and then the first: the leading bytes are 0xFF until the end.
    for (std::uint32_t tail = 0; tail < 64; ++tail) {
        RangeEncoder encoder;
        for (int i = 0; i < 200; ++i) encoder.encode((1U << 24) - 1, 1, 1U << 24);
        for (std::uint32_t i = 0; i < tail; ++i) encoder.encode_bits(word(i) & 1, 1);
        encoder.encode(0, 1, 3);
        const auto bytes = encoder.finish();
        RangeDecoder decoder(bytes);
        const std::uint32_t wide[] = {(1U << 24) - 1, 1};
        for (int i = 0; i < 200; ++i) ASSERT_EQ(decoder.decode(wide, 1U << 24), 1U);
        for (std::uint32_t i = 0; i < tail; ++i) ASSERT_EQ(decoder.decode_bits(1), word(i) & 1);
        const std::uint32_t three[] = {1, 1, 1};
        ASSERT_EQ(decoder.decode(three, 3), 0U);
    }
}

TEST(RangeCoder, RandomIntervalsComeBack) {
    std::vector<std::array<std::uint32_t, 3>> intervals;
    for (std::uint32_t i = 0; i < 20000; ++i) {
        const std::uint32_t total = 1 + word(3 * i) % (1U << (1 + i % 24));
        const std::uint32_t below = word(3 * i + 1) % total;
        intervals.push_back({below, 1 + word(3 * i + 2) % (total - below), total});
    }
    RangeEncoder encoder;
    double ideal = 0.0;
    for (const auto& [below, count, total] : intervals) {
        encoder.encode(below, count, total);
        ideal += std::log2(static_cast<double>(total) / count);
    }
    const auto bytes = encoder.finish();
    EXPECT_LE(8.0 * static_cast<double>(bytes.size()), ideal * 1.0001 + 16.0);
    RangeDecoder decoder(bytes);
    for (const auto& [below, count, total] : intervals) {
        std::vector<std::uint32_t> counts = {below, count};
        if (below + count < total) counts.push_back(total - below - count);
        ASSERT_EQ(decoder.decode(counts, total), 1U);
    }
    decoder.require_end();
}

TEST(RangeCoder, BitsAreSymbolsOfEqualCounts) {
    RangeEncoder bits;
    RangeEncoder symbols;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const unsigned number = 1 + i % 20;
        const std::uint32_t value = word(i) >> (32 - number);
        bits.encode_bits(value, number);
        symbols.encode(value, 1, 1U << number);
    }
    const auto bytes = bits.finish();
    EXPECT_EQ(bytes, symbols.finish());
    RangeDecoder of_bits(bytes);
    RangeDecoder of_symbols(bytes);
    const std::vector<std::uint32_t> equal(1U << 20, 1);
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const unsigned number = 1 + i % 20;
        ASSERT_EQ(of_bits.decode_bits(number), word(i) >> (32 - number));
        if (number > 8) {
            (void)of_symbols.decode_bits(number);
        } else {
            ASSERT_EQ(of_symbols.decode(std::span(equal).first(1U << number), 1U << number), word(i) >> (32 - number));
        }
    }
    of_bits.require_end();
    of_symbols.require_end();
}

TEST(RangeCoder, ReadingBehindTheEndIsAnError) {
    const auto list = geometric_symbols(3000);
    auto bytes = coded(list);
    bytes.resize(bytes.size() / 2);
    RangeDecoder decoder(bytes);
    AdaptiveCounts counts(std::vector<std::uint32_t>(16, 4), 24, 5000);
    EXPECT_THROW(
        {
            for (int i = 0; i < 100000; ++i) (void)counts.decode(decoder);
        },
        Error);
    bytes = coded(list);
    bytes.insert(bytes.end(), 9, 0);
    RangeDecoder longer(bytes);
    AdaptiveCounts fresh(std::vector<std::uint32_t>(16, 4), 24, 5000);
    for (std::size_t i = 0; i < list.size(); ++i) (void)fresh.decode(longer);
    EXPECT_THROW(longer.require_end(), Error);
}

TEST(RangeCoder, CountsThatCannotBeCodedAreRejected) {
    EXPECT_THROW(AdaptiveCounts({1, 0, 1}, 1, 100), Error);
    EXPECT_THROW(AdaptiveCounts({60, 60}, 1, 100), Error);
    EXPECT_THROW(AdaptiveCounts({1, 1}, 1U << 24, 1U << 24), Error);
}

}  // namespace
}  // namespace spiked::estimators
