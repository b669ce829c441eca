// causal-klt and causal-klt-joint as cache methods: bytes and their ledger, rates, scales, causality and bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/causal_stream.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "estimators/causal/causal_scales.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

CacheCoder causal_coder(std::string_view name, double bits, std::size_t channels, const CacheGroup& group = {}) {
    const CacheMethod method = cache_method(name);
    method.check_bits(bits);
    return cache_coder(method, channels, bits, {}, {}, group);
}

/// Rows whose channels are mixtures of sources with variances from 4 to 1/64.
arma::mat mixture(std::size_t tokens, std::size_t channels, std::uint64_t replicate) {
    return gaussian(tokens, channels, replicate) * arma::diagmat(arma::logspace(0.6, -1.8, channels)) *
           arma::orth(gaussian(channels, channels, 77));
}

TEST(CacheCausal, BitsByHandAndAnotherObjectDecodes) {
    constexpr std::size_t channels = 16;
    const arma::mat rows = mixture(300, channels, 1);
    const CacheGroup keys{1, 0, {gaussian(40, channels, 2)}};
    const CacheGroup heads{2, 2, {}};
    struct Case {
        const char* name;
        CacheGroup group;
        std::uint64_t scales, sink;
    };
    for (const Case& at :
         {Case{"causal-klt", {}, 0, channels}, Case{"causal-klt:sink=off", {}, 0, 0},
          Case{"causal-klt", keys, channels / 2, channels}, Case{"causal-klt:weights=none", keys, 0, channels},
          // 4 heads of 4 channels: 2 pairs for each of 2 heads of keys, 1 scale for each of values.
          Case{"causal-klt-joint:freeze=128", heads, 6, channels}}) {
        SCOPED_TRACE(at.name);
        const Encoded encoded = causal_coder(at.name, 3, channels, at.group).sequence.encode(rows);
        EXPECT_EQ(encoded.ledger.total(), 8 * encoded.bytes.size());
        // The flag, the step and the lengths of three blocks.
        EXPECT_EQ(encoded.ledger.bits(Item::header), 8U + 16 + 3 * 32);
        EXPECT_EQ(encoded.ledger.bits(Item::scales), 8 * at.scales);
        EXPECT_EQ(encoded.ledger.bits(Item::outliers), 16 * at.sink);
        EXPECT_EQ(encoded.ledger.bits(Item::padding), 0U);
        // A decoder knows the heads, not the queries.
        const CacheGroup known{at.group.keys, at.group.values, {}};
        const CacheCoder other = causal_coder(at.name, 0.25, channels, known);
        const arma::mat decoded = other.sequence.decode(encoded.bytes, rows.n_rows);
        EXPECT_LT(relative_error(decoded, rows), 0.15);
        if (at.sink > 0) {
            EXPECT_LT(arma::abs(decoded.row(0) - rows.row(0)).max(), 4e-3);
        }
    }
}

TEST(CacheCausal, TheBytesAreThoseOfTheCodec) {
    const arma::mat rows = mixture(200, 8, 3);
    const arma::mat queries = gaussian(50, 8, 4) * arma::diagmat(arma::logspace(-1, 1, 8));
    const Encoded encoded = causal_coder("causal-klt:freeze=128", 2.5, 8, {1, 0, {queries}}).sequence.encode(rows);
    CausalOptions options;
    options.freeze = 128;
    const CausalCode code =
        encode_causal_at(2.5, rows, joined_shape({1, 0, 8}), options, {.exponents = query_exponents(queries)});
    std::vector<std::uint8_t> expected{1};
    expected.insert(expected.end(), code.header.begin(), code.header.end());
    for (const auto& block : code.blocks) {
        for (std::size_t i = 0; i < 4; ++i) expected.push_back(static_cast<std::uint8_t>(block.size() >> (8 * i)));
        expected.insert(expected.end(), block.begin(), block.end());
    }
    EXPECT_EQ(encoded.bytes, expected);
}

TEST(CacheCausal, FractionsOfBitsComeOutAsStoredBits) {
    const arma::mat rows = mixture(512, 16, 5);
    for (const char* name : {"causal-klt", "causal-klt:freeze=never", "causal-klt:dependent=off:ar=off:adapt=off"})
        for (const double bits : {1.5, 2.25, 4.0}) {
            SCOPED_TRACE(name);
            const Encoded encoded = causal_coder(name, bits, 16).sequence.encode(rows);
            EXPECT_NEAR(static_cast<double>(encoded.ledger.total()) / static_cast<double>(rows.n_elem), bits, 0.03);
        }
}

TEST(CacheCausal, EveryPartOfTheCodeHasAnOption) {
    // Each option changes the bytes at 2.5 bits; the past basis gains most on mixtures, and a basis of unlike heads
    // of a layer is scaled to equal spread.
    const arma::mat rows = mixture(384, 16, 6);
    const auto decoded = [&](std::string_view name) { return through(causal_coder(name, 2.5, 16).sequence, rows); };
    const arma::mat all = decoded("causal-klt");
    for (const char* name : {"causal-klt:sink=off", "causal-klt:basis=none", "causal-klt:ar=off",
                             "causal-klt:dependent=off", "causal-klt:adapt=off", "causal-klt:freeze=128",
                             "causal-klt:freeze=never", "causal-klt:update=64", "causal-klt:lambda=0.1"})
        EXPECT_GT(arma::abs(decoded(name) - all).max(), 1e-6) << name;
    EXPECT_GT(relative_error(decoded("causal-klt:basis=none"), rows), 1.3 * relative_error(all, rows));
}

/// The bytes before the blocks (the flag, the step and the first token), then those of each block behind its length.
std::vector<std::vector<std::uint8_t>> parts_of(const Encoded& encoded, std::size_t channels) {
    const auto part = [&](std::size_t from, std::size_t size) {
        const auto begin = encoded.bytes.begin() + static_cast<std::ptrdiff_t>(from);
        return std::vector<std::uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    std::size_t at = 1 + 2 + 2 * channels;
    std::vector<std::vector<std::uint8_t>> parts{part(0, at)};
    while (at < encoded.bytes.size()) {
        std::size_t size = 0;
        for (std::size_t i = 0; i < 4; ++i) size |= std::size_t{encoded.bytes[at + i]} << (8 * i);
        parts.push_back(part(at + 4, size));
        at += 4 + size;
    }
    return parts;
}

TEST(CacheCausal, ALaterTokenChangesNoEarlierBlock) {
    constexpr std::size_t channels = 8;
    const arma::mat rows = mixture(384, channels, 7);
    arma::mat other = rows;
    other.row(383) *= -1.0;
    // All tokens decide the step: the bits are such that both searches end at the same one.
    bool found = false;
    for (double bits = 2.0; bits < 4.0 && !found; bits += 0.05) {
        const CacheCoder coder = causal_coder("causal-klt", bits, channels);
        const auto before = parts_of(coder.sequence.encode(rows), channels);
        const auto after = parts_of(coder.sequence.encode(other), channels);
        ASSERT_EQ(before.size(), 4U);
        found = before[0] == after[0];
        if (!found) continue;
        EXPECT_EQ(after[1], before[1]);
        EXPECT_EQ(after[2], before[2]);
        EXPECT_NE(after[3], before[3]);
    }
    EXPECT_TRUE(found);
}

TEST(CacheCausal, WeightsMoveTheErrorFromPairsThatQueriesUse) {
    constexpr std::size_t channels = 8;
    const arma::mat rows = gaussian(512, channels, 8);
    arma::mat queries = gaussian(64, channels, 9);
    queries.cols(0, 1) *= 16.0;  // pairs 0 and 1: channels 0, 1, 4, 5
    queries.cols(4, 5) *= 16.0;
    const auto errors = [&](const CacheGroup& group) {
        const arma::mat decoded = through(causal_coder("causal-klt", 2.5, channels, group).sequence, rows);
        return arma::rowvec(arma::mean(arma::square(decoded - rows), 0));
    };
    const arma::rowvec with = errors({1, 0, {queries}});
    const arma::rowvec without = errors({1, 0, {}});
    EXPECT_LT(with(0), 0.7 * without(0));
    EXPECT_LT(with(5), 0.7 * without(5));
    EXPECT_GT(with(2), 1.4 * without(2));
}

TEST(CacheCausal, HeadsOfUnlikeSpreadAreScaled) {
    arma::mat rows = gaussian(512, 8, 10);
    rows.tail_cols(4) *= 50.0;
    const arma::mat decoded = through(causal_coder("causal-klt:heads=0", 2.5, 8, {0, 2, {}}).sequence, rows);
    const double small = relative_error(decoded.head_cols(4), rows.head_cols(4));
    const double large = relative_error(decoded.tail_cols(4), rows.tail_cols(4));
    EXPECT_NEAR(small / large, 1.0, 0.1);
    // As one head, the small channels are below the water level.
    const arma::mat one = through(causal_coder("causal-klt", 2.5, 8).sequence, rows);
    EXPECT_GT(relative_error(one.head_cols(4), rows.head_cols(4)), 3.0 * small);
}

/// The relative error with one step for all blocks, the finest that takes no more than `bits` per entry of the matrix
/// with header, flag and lengths: bisection over 16 octaves.
double error_of_one_step(double bits, const arma::mat& rows) {
    const CausalShape shape{rows.n_cols};
    const CausalOptions options = causal_options(cache_method("causal-klt").own, rows.n_cols);
    const auto code = [&](int step) { return encode_causal(rows, shape, options, {.step = step, .exponents = {}}); };
    int fine = -2048;
    int coarse = 2048;
    while (coarse - fine > 1) {
        const int middle = (fine + coarse) / 2;
        std::size_t bytes = 1 + 2 + 2 * rows.n_cols;
        for (const auto& block : code(middle).blocks) bytes += 4 + block.size();
        (8.0 * static_cast<double>(bytes) > bits * static_cast<double>(rows.n_elem) ? fine : coarse) = middle;
    }
    return relative_error(decode_causal(code(coarse), shape, options), rows);
}

TEST(CausalStream, AWholeSequenceTakesTheBitsThatAreAskedAndLosesLittleToOneStep) {
    constexpr std::size_t channels = 32;
    constexpr std::size_t tokens = 1024;
    const arma::mat rows = gaussian(tokens, channels, 13) * arma::diagmat(arma::logspace(0.5, -1, channels)) *
                           arma::orth(gaussian(channels, channels, 77));
    for (const double asked : {2.0, 3.0}) {
        CausalStream stream(cache_method("causal-klt"), asked, rows.head_rows(128), {});
        arma::mat decoded;
        double bits = 0.0;
        for (std::size_t end = 128; end <= tokens; end += 128) {
            decoded = arma::join_cols(decoded, stream.code(rows.rows(end - 128, end - 1), bits));
            const double rate = bits / static_cast<double>(end * channels);
            if (end == 128) {
                EXPECT_GT(rate, 1.1 * asked);
                EXPECT_LT(rate, 1.5 * asked);
            }
            if (end >= 512) {
                EXPECT_NEAR(rate, asked, 0.01 * asked) << end;
            }
            if (end != 512 && end != 768 && end != tokens) continue;
            const arma::mat part = rows.head_rows(end);
            const double ratio = relative_error(decoded, part) / error_of_one_step(asked, part);
            EXPECT_LT(ratio, 1.03) << asked << " bits, " << end << " tokens";
            EXPECT_GT(ratio, 0.9) << asked << " bits, " << end << " tokens";
        }
    }
}

TEST(CausalStream, ASequenceOfKnownLengthTakesTheBitsThatAreAskedHoweverShort) {
    constexpr std::size_t channels = 32;
    const arma::mat rows = gaussian(1024, channels, 13) * arma::diagmat(arma::logspace(0.5, -1, channels)) *
                           arma::orth(gaussian(channels, channels, 77));
    const auto coded = [&](const arma::mat& all, std::size_t announced, double& bits) {
        CausalStream stream(cache_method("causal-klt"), 2.5, all.head_rows(128), {}, announced);
        arma::mat decoded;
        for (std::size_t t = 0; t < all.n_rows; t += 128)
            decoded = arma::join_cols(decoded,
                                      stream.code(all.rows(t, std::min<std::size_t>(t + 128, all.n_rows) - 1), bits));
        return decoded;
    };
    for (const std::size_t tokens : {128, 150, 256, 384, 512, 1024}) {
        const arma::mat part = rows.head_rows(tokens);
        double bits = 0.0;
        const arma::mat decoded = coded(part, tokens, bits);
        // A last block bears its part of what is stored beside it.
        EXPECT_NEAR(bits / static_cast<double>(part.n_elem), 2.5, tokens % 128 == 0 ? 0.02 : 0.06) << tokens;
        const double ratio = relative_error(decoded, part) / error_of_one_step(2.5, part);
        EXPECT_LT(ratio, 1.05) << tokens;
        EXPECT_GT(ratio, 0.95) << tokens;
        // Blocks depend on the number of tokens that follow, and on none of them.
        arma::mat other = part;
        other.tail_rows(22) *= 3.0;
        if (tokens == 128) continue;
        double more = 0.0;
        const std::size_t same = (tokens - 1) / 128 * 128;
        EXPECT_TRUE(
            arma::approx_equal(coded(other, tokens, more).head_rows(same), decoded.head_rows(same), "absdiff", 0.0));
    }
    // Without the length, or with tokens after those that were announced, the rate holds from 512 tokens on.
    double unknown = 0.0;
    (void)coded(rows.head_rows(128), 0, unknown);
    EXPECT_GT(unknown / (128.0 * channels), 1.1 * 2.5);
    double longer = 0.0;
    (void)coded(rows, 256, longer);
    EXPECT_NEAR(longer / static_cast<double>(rows.n_elem), 2.5, 0.025);
}

TEST(CausalStream, WeightsOfQueriesAreCountedInTheRate) {
    const arma::mat rows = mixture(512, 16, 18);
    const arma::mat queries = gaussian(50, 16, 14) * arma::diagmat(arma::logspace(-1, 1, 16));
    CausalStream stream(cache_method("causal-klt"), 2.0, rows.head_rows(128), {1, 0, {queries}});
    EXPECT_EQ(stream.header().size(), 2U + 8 + 2 * 16);
    double bits = 0.0;
    for (std::size_t t = 0; t < rows.n_rows; t += 128) (void)stream.code(rows.rows(t, t + 127), bits);
    EXPECT_NEAR(bits / static_cast<double>(rows.n_elem), 2.0, 0.02);
}

TEST(CausalStream, ALaterBlockChangesNoEarlierOne) {
    const arma::mat rows = mixture(512, 8, 19);
    arma::mat other = rows;
    other.tail_rows(128) *= 3.0;
    CausalStream stream(cache_method("causal-klt"), 2.5, rows.head_rows(128), {});
    CausalStream changed(cache_method("causal-klt"), 2.5, other.head_rows(128), {});
    double bits = 0.0;
    double changed_bits = 0.0;
    for (std::size_t t = 0; t < rows.n_rows; t += 128) {
        const arma::mat found = stream.code(rows.rows(t, t + 127), bits);
        const bool equal =
            arma::approx_equal(found, changed.code(other.rows(t, t + 127), changed_bits), "absdiff", 0.0);
        EXPECT_EQ(equal, t < 384) << t;
        if (t < 384) {
            EXPECT_EQ(bits, changed_bits) << t;
        }
    }
}

TEST(CausalStream, RowsThatGrowInTheMiddleStillTakeTheBitsThatAreAsked) {
    arma::mat rows = mixture(1024, 16, 21);
    rows.tail_rows(448) *= 20.0;
    CausalStream stream(cache_method("causal-klt"), 2.5, rows.head_rows(128), {});
    double bits = 0.0;
    for (std::size_t t = 0; t < rows.n_rows; t += 128) {
        (void)stream.code(rows.rows(t, t + 127), bits);
        if (t < 384) continue;
        EXPECT_NEAR(bits / static_cast<double>((t + 128) * rows.n_cols), 2.5, 0.025) << t;
    }
}

TEST(CausalStream, CountsTheBytesOfAnEncoderWithTheStepsOfItsBlocks) {
    constexpr std::size_t channels = 16;
    arma::mat rows = mixture(300, channels, 16);
    rows.tail_rows(172) *= 4.0;  // so that later blocks need another step
    CausalStream stream(cache_method("causal-klt:freeze=128"), 2.5, rows.head_rows(128), {});
    CausalOptions options;
    options.freeze = 128;
    CausalEncoder encoder({channels}, options, {(stream.header()[0] | stream.header()[1] << 8) - 16384, {}},
                          rows.row(0));
    CausalDecoder decoder({channels}, options, encoder.header());
    double bits = 0.0;
    double counted = 8.0 + 8.0 * static_cast<double>(encoder.header().size());
    std::vector<std::vector<std::uint8_t>> blocks;
    std::vector<int> steps;
    for (const std::size_t t : {0UL, 128UL, 256UL}) {
        const arma::mat block = rows.rows(t, std::min<std::size_t>(t + 127, 299));
        const arma::mat found = stream.code(block, bits);
        // What is due, with the excess so far repaid over 3 blocks, then over 2.
        const double due = 2.5 - (counted - 2.5 * static_cast<double>(t * channels)) / (t == 128 ? 3 : 2) / 2048.0;
        const double part = 48.0 * static_cast<double>(block.n_rows) / 128.0 / static_cast<double>(block.n_elem);
        blocks.push_back(t == 0 ? encoder.encode(block) : encoder.encode_at(due - part, block, 0.03 * 2.5));
        steps.push_back(encoder.step());
        counted += 8.0 * static_cast<double>(blocks.back().size()) + (t == 0 ? 32.0 : 48.0);
        EXPECT_EQ(bits, counted);
        EXPECT_TRUE(arma::approx_equal(found, encoder.decoded(), "absdiff", 0.0));
        decoder.set_step(steps.back());
        EXPECT_TRUE(arma::approx_equal(found, decoder.next(blocks.back(), block.n_rows), "absdiff", 0.0));
    }
    EXPECT_NE(steps[0], steps[1]);
    // A block after the freeze decodes alone, with its step.
    decoder.set_step(steps[1]);
    EXPECT_LT(relative_error(decoder.frozen_block(blocks[1], 128), rows.rows(128, 255)), 0.3);
    message_of([&] { decoder.set_step(16385); }, ErrorKind::input);
}

TEST(CausalStream, CodesBlocksOfZerosAndOfOtherSizeThanTheFirst) {
    constexpr std::size_t channels = 8;
    arma::mat rows = mixture(512, channels, 17);
    rows.rows(128, 255).zeros();
    rows.rows(256, 383) *= 1000.0;
    CausalStream stream(cache_method("causal-klt"), 3.0, rows.head_rows(128), {});
    double bits = 0.0;
    for (std::size_t t = 0; t < rows.n_rows; t += 128) {
        const arma::mat block = rows.rows(t, t + 127);
        const arma::mat found = stream.code(block, bits);
        if (t == 128)
            EXPECT_LT(arma::abs(found).max(), 0.3);
        else
            EXPECT_LT(relative_error(found, block), 0.25) << t;
    }
    EXPECT_LT(bits / static_cast<double>(rows.n_elem), 3.05);
}

TEST(CausalStream, AFirstBlockOfFewTokensIsCoded) {
    const arma::mat rows = gaussian(3, 4, 15);
    for (const std::size_t tokens : {1, 2, 3}) {
        CausalStream stream(cache_method("causal-klt"), 4.0, rows.head_rows(tokens), {});
        double bits = 0.0;
        const arma::mat decoded = stream.code(rows.head_rows(tokens), bits);
        EXPECT_LT(arma::abs(decoded.row(0) - rows.row(0)).max(), 4e-3);
        EXPECT_LT(relative_error(decoded, rows.head_rows(tokens)), 0.5) << tokens;
    }
    message_of([&] { (void)CausalStream(cache_method("causal-klt"), 4.0, arma::mat(2, 4).fill(std::nan("")), {}); },
               ErrorKind::input);
}

TEST(CacheCausal, ShortAndConstantSequences) {
    // The first token and the lengths of blocks take more bits than a short sequence may have.
    for (const std::size_t tokens : {1, 2, 127, 129}) {
        SCOPED_TRACE(tokens);
        const arma::mat rows = gaussian(tokens, 6, 11);
        const arma::mat decoded = through(causal_coder("causal-klt", 6, 6).sequence, rows);
        EXPECT_LT(relative_error(decoded.row(0), rows.row(0)), 1e-3);
        if (tokens > 100) {
            EXPECT_LT(relative_error(decoded, rows), 0.05);
        }
    }
    const arma::mat constant(130, 6, arma::fill::value(2.5));
    EXPECT_LT(relative_error(through(causal_coder("causal-klt", 4, 6).sequence, constant), constant), 0.05);
    const arma::mat zero(130, 6, arma::fill::zeros);
    EXPECT_LT(arma::abs(through(causal_coder("causal-klt", 2, 6).sequence, zero)).max(), 1e-9);
    const CacheCoder coder = causal_coder("causal-klt", 2, 6);
    EXPECT_EQ(coder.sequence.decode(coder.sequence.encode(arma::mat(0, 6)).bytes, 0).n_rows, 0U);
}

TEST(CacheCausal, DegenerateDataIsCodedOrRejectedInOneLine) {
    const auto decoded = [](const char* name, const arma::mat& rows) {
        return through(causal_coder(name, 2, rows.n_cols).sequence, rows);
    };
    // Unlike channels that are all constant, and channels of which one is constant.
    arma::mat constant(200, 6);
    for (std::size_t i = 0; i < 6; ++i) constant.col(i).fill(100.0 * static_cast<double>(i) - 250.0);
    EXPECT_LT(relative_error(decoded("causal-klt", constant), constant), 0.1);
    EXPECT_LT(relative_error(decoded("causal-klt:sink=off", constant), constant), 0.1);
    const arma::mat rows = gaussian(200, 6, 20);
    arma::mat partly = rows;
    partly.col(2).fill(7.0);
    EXPECT_LT(relative_error(decoded("causal-klt", partly), partly), 0.15);
    for (const char* name : {"causal-klt", "causal-klt:sink=off", "causal-klt-joint:sink=off"})
        for (const double factor : {1e-20, 1e25, 1e200, std::nan("")}) {
            const std::string message = message_of([&] { (void)decoded(name, rows * factor); }, ErrorKind::input);
            EXPECT_EQ(message.find('\n'), std::string::npos) << message;
            if (!std::isnan(factor) && std::string_view(name).ends_with("off")) {
                EXPECT_NE(message.find("root mean square"), std::string::npos) << message;
                EXPECT_NE(message.find("scale the data"), std::string::npos) << message;
            }
        }
    // As far as the bounds, the error is that of other scales.
    const double error = relative_error(decoded("causal-klt:sink=off", rows), rows);
    for (const double factor : {0x1p-38, 0x1p48})
        EXPECT_NEAR(relative_error(decoded("causal-klt:sink=off", rows * factor), rows * factor), error, 1e-6);
    // A first token that fp16 would lose.
    message_of([&] { (void)decoded("causal-klt", rows * 1e-9); }, ErrorKind::input);
    // All zeros, one token, one channel.
    for (const std::size_t tokens : {1UL, 300UL})
        EXPECT_EQ(arma::abs(decoded("causal-klt", arma::mat(tokens, 6, arma::fill::zeros))).max(), 0.0);
    EXPECT_LT(relative_error(through(causal_coder("causal-klt:sink=off", 6, 6).sequence, rows.row(0)), rows.row(0)),
              0.2);
    EXPECT_LT(relative_error(decoded("causal-klt", rows.col(0)), rows.col(0)), 0.55);
}

TEST(CacheCausal, BasesOfManyChannelsAreFew) {
    EXPECT_EQ(least_causal_update(1), 8U);
    EXPECT_EQ(least_causal_update(181), 8U);
    EXPECT_EQ(least_causal_update(256), 16U);
    EXPECT_EQ(least_causal_update(512), 64U);
    EXPECT_EQ(least_causal_update(1024), 256U);
    EXPECT_EQ(causal_options(cache_method("causal-klt").own, 256).update, 32U);
    EXPECT_EQ(causal_options(cache_method("causal-klt").own, 1024).update, 256U);
    EXPECT_EQ(causal_options(cache_method("causal-klt:update=8").own, 1024).update, 8U);
    // Writer and reader.
    const CausalOptions often{.live = true, .update = 8};
    for (const auto& made :
         {message_of([&] { (void)CausalEncoder({1024}, often, {}, arma::rowvec(1024)); }, ErrorKind::usage),
          message_of([&] { (void)CausalDecoder({1024}, often, std::vector<std::uint8_t>(2050)); }, ErrorKind::usage)})
        EXPECT_NE(made.find("update=8 is not possible with 1024 channels"), std::string::npos) << made;
    EXPECT_NO_THROW((void)CausalEncoder({128}, often, {}, arma::rowvec(128)));
}

TEST(CacheCausal, RejectsWhatItCannotDo) {
    const auto usage = [&](std::string_view name, double bits) {
        return message_of([&] { (void)causal_coder(name, bits, 8); }, ErrorKind::usage);
    };
    EXPECT_NE(usage("unrope+causal-klt", 2).find("leave unrope+ out"), std::string::npos);
    EXPECT_NE(usage("causal-klt", 0.1).find("0.25"), std::string::npos);
    EXPECT_NE(usage("causal-klt", 9).find("0.25 to 8"), std::string::npos);
    EXPECT_NE(usage("causal-klt:freeze=200", 2).find("multiple of 128"), std::string::npos);
    EXPECT_NE(usage("causal-klt:update=12", 2).find("multiple of 8"), std::string::npos);
    EXPECT_NE(usage("causal-klt-joint:heads=2", 2).find("heads"), std::string::npos);
    EXPECT_NE(usage("causal-klt:sink=yes", 2).find("on"), std::string::npos);
    EXPECT_TRUE(cache_method("causal-klt-joint").sides);
    EXPECT_EQ(cache_method("causal-klt-joint").heads, 0U);
    EXPECT_EQ(cache_method("causal-klt").heads, 1U);

    const arma::mat rows = gaussian(150, 8, 12);
    const CacheCoder coder = causal_coder("causal-klt", 2, 8);
    arma::mat broken = rows;
    broken(140, 2) = std::nan("");
    message_of([&] { (void)coder.sequence.encode(broken); }, ErrorKind::input);
    const std::vector<std::uint8_t> bytes = coder.sequence.encode(rows).bytes;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{10}, bytes.size() - 1}) {
        SCOPED_TRACE(size);
        const std::vector<std::uint8_t> shorter(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        message_of([&] { (void)coder.sequence.decode(shorter, 150); }, ErrorKind::input);
    }
    std::vector<std::uint8_t> longer = bytes;
    longer.push_back(0);
    message_of([&] { (void)coder.sequence.decode(longer, 150); }, ErrorKind::input);
    longer = bytes;
    longer[0] = 2;
    message_of([&] { (void)coder.sequence.decode(longer, 150); }, ErrorKind::input);
    // A length of a block beyond the bytes.
    longer = bytes;
    longer[1 + 2 + 16 + 3] = 0xFF;
    message_of([&] { (void)coder.sequence.decode(longer, 150); }, ErrorKind::input);
}

}  // namespace
}  // namespace spiked::estimators
