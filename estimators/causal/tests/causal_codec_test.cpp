#include "estimators/causal/causal_codec.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

arma::mat causal_normals(std::size_t rows, std::size_t columns, const char* cell) {
    arma::mat found(rows, columns);
    fill_normal(stream::Stream(stream::StudySeed::parse("0x2C"), cell, stream::Role::noise, 0),
                std::span(found.memptr(), found.n_elem));
    return found;
}

/// Channel variances of the rows below, in a random basis.
arma::vec channel_variances(std::size_t m, double decay) {
    arma::vec variances(m);
    for (std::size_t k = 0; k < m; ++k) variances(k) = 100.0 * std::pow(decay, static_cast<double>(k));
    return variances;
}

/// Rows whose coordinates in a random basis are autoregressive, with a mean and a first row far off.
arma::mat causal_rows(std::size_t tokens, std::size_t m, double rho = 0.6, double decay = 0.7) {
    arma::mat q;
    arma::mat r;
    arma::qr(q, r, causal_normals(m, m, "basis"));
    arma::mat innovations = causal_normals(tokens, m, "innovations");
    for (std::size_t t = 1; t < tokens; ++t)
        innovations.row(t) = rho * innovations.row(t - 1) + std::sqrt(1.0 - rho * rho) * innovations.row(t);
    arma::mat rows = innovations * arma::diagmat(arma::sqrt(channel_variances(m, decay))) * q.t();
    rows.each_row() += 3.0 * causal_normals(1, m, "mean");
    rows.row(0) *= 10.0;
    return rows;
}

double causal_error(const arma::mat& found, const arma::mat& rows) {
    return arma::norm(found - rows, "fro") / arma::norm(rows, "fro");
}

CausalOptions quick() { return {.freeze = 128, .update = 32}; }

double bits_an_entry(const CausalCode& code, const arma::mat& rows) {
    return static_cast<double>(code.stored_bits()) / static_cast<double>(rows.n_elem);
}

class CausalCodecParts : public testing::TestWithParam<int> {
protected:
    /// One part after the other is changed.
    static CausalOptions options(int changed) {
        CausalOptions found = quick();
        if (changed == 1) found.sink = false;
        if (changed == 2) found.basis = false;
        if (changed == 3) found.predict = false;
        if (changed == 4) found.dependent = false;
        if (changed == 5) found.adapt = false;
        if (changed == 6) found.live = true;
        if (changed == 7) found.freeze = 256, found.update = 64;
        return found;
    }
};

TEST_P(CausalCodecParts, DecodesWhatTheEncoderHas) {
    const CausalOptions chosen = options(GetParam());
    for (const std::size_t tokens : {1, 2, 127, 128, 129, 400}) {
        const arma::mat rows = causal_rows(tokens, 11);
        CausalShape shape{11, std::vector<std::uint16_t>(11, 0)};
        shape.scale_of[3] = 1;
        const CausalSettings settings{100, {5, -20}};
        CausalEncoder encoder(shape, chosen, settings, rows.row(0));
        CausalDecoder decoder(shape, chosen, encoder.header());
        std::size_t stored = 8 * encoder.header().size();
        for (std::size_t t = 0; t < tokens; t += causal_block) {
            const std::size_t count = std::min(causal_block, tokens - t);
            const auto bytes = encoder.encode(rows.rows(t, t + count - 1));
            ASSERT_TRUE(arma::all(arma::vectorise(decoder.next(bytes, count) == encoder.decoded()))) << t;
            stored += 32 + 8 * bytes.size();
        }
        const CausalCode code = encode_causal(rows, shape, chosen, settings);
        EXPECT_EQ(code.stored_bits(), stored) << "the length of each block counts";
        EXPECT_LT(causal_error(decode_causal(code, shape, chosen), rows), tokens > 2 ? 0.12 : 0.5) << tokens;
    }
}

INSTANTIATE_TEST_SUITE_P(Changed, CausalCodecParts, testing::Range(0, 8));

TEST(CausalCodecIdentity, ErrorsVanishAtHighRates) {
    const arma::mat rows = causal_rows(300, 9);
    const CausalShape shape{9};
    CausalOptions chosen = quick();
    chosen.sink = false;
    for (const bool dependent : {true, false}) {
        chosen.dependent = dependent;
        const CausalCode code = encode_causal(rows, shape, chosen, {.step = -30 * 256});
        EXPECT_LT(arma::abs(decode_causal(code, shape, chosen) - rows).max(), 9.0 * 0x1p-30);
    }
    EXPECT_THROW((void)encode_causal(rows, shape, chosen, {.step = -60 * 256}), Error);
}

TEST(CausalCodec, NoBlockDependsOnLaterTokens) {
    const arma::mat rows = causal_rows(500, 8);
    for (const bool live : {false, true}) {
        CausalOptions chosen = quick();
        chosen.live = live;
        const CausalCode code = encode_causal(rows, {8}, chosen, {});
        for (const std::size_t changed : {129, 300, 400}) {
            arma::mat other = rows;
            other.row(changed) += 50.0;
            const CausalCode found = encode_causal(other, {8}, chosen, {});
            for (std::size_t block = 0; block < code.blocks.size(); ++block) {
                const bool same = found.blocks[block] == code.blocks[block];
                if (block <= changed / causal_block) {
                    EXPECT_EQ(same, block < changed / causal_block) << block;
                }
            }
        }
    }
}

TEST(CausalCodec, BlocksAfterTheFreezeDecodeAlone) {
    const arma::mat rows = causal_rows(700, 8);
    const CausalCode code = encode_causal(rows, {8}, quick(), {});
    const arma::mat all = decode_causal(code, {8}, quick());
    CausalDecoder decoder({8}, quick(), code.header);
    EXPECT_FALSE(decoder.frozen());
    EXPECT_THROW((void)decoder.frozen_block(code.blocks[3], 128), Error);
    (void)decoder.next(code.blocks[0], 128);
    ASSERT_TRUE(decoder.frozen());
    for (const std::size_t block : {5, 2, 4}) {
        const std::size_t count = block == 5 ? 60 : 128;
        const arma::mat found = decoder.frozen_block(code.blocks[block], count);
        EXPECT_TRUE(arma::approx_equal(found, all.rows(128 * block, 128 * block + count - 1), "absdiff", 0.0)) << block;
    }
}

TEST(CausalCodecLaw, RateIsNearTheRateDistortionFunctionOfItsSource) {
    // Autoregressive normals: channel k has innovations of variance s = (1 - rho^2) channel_variances(k), and at a
    // small error D in each channel the rate is the mean of log2(s / D) / 2. Dependent quantization loses about .12
    // bits to that, a basis and variances that are learnt from 512 tokens .04; each block has two bytes of its own.
    constexpr std::size_t m = 64;
    constexpr double rho = 0.6;
    constexpr double decay = 0.95;
    const arma::mat rows = causal_rows(2048, m, rho, decay);
    CausalOptions chosen = causal_layer();
    const CausalCode code = encode_causal(rows, {m}, chosen, {.step = -512});
    const arma::mat decoded = decode_causal(code, {m}, chosen);
    std::size_t bytes = 0;
    for (std::size_t block = 4; block < code.blocks.size(); ++block) bytes += code.blocks[block].size();
    const double entries = (2048.0 - 512.0) * m;
    const double bits = 8.0 * static_cast<double>(bytes) / entries;
    const double error = arma::accu(arma::square(decoded.rows(512, 2047) - rows.rows(512, 2047))) / entries;
    double ideal = 0.0;
    for (const double variance : channel_variances(m, decay))
        ideal += 0.5 * std::log2((1.0 - rho * rho) * variance / error) / m;
    EXPECT_GT(bits, ideal);
    EXPECT_LT(bits, ideal + 0.24);
}

TEST(CausalCodecControl, WithoutTheStructureOfTheRowsTheGainIsLost) {
    constexpr std::size_t m = 16;
    arma::mat rows = causal_rows(640, m);
    const auto error_at = [&](const arma::mat& data, bool basis, bool predict) {
        CausalOptions chosen = quick();
        chosen.basis = basis;
        chosen.predict = predict;
        return causal_error(decode_causal(encode_causal_at(3.0, data, {m}, chosen, {}), {m}, chosen), data);
    };
    const double all = error_at(rows, true, true);
    EXPECT_LT(all, 0.9 * error_at(rows, true, false));
    EXPECT_LT(all, 0.75 * error_at(rows, false, true));
    // The same columns, each in an order of its own: as large, without correlation of columns or tokens.
    for (std::size_t i = 0; i < m; ++i) {
        const arma::vec places = causal_normals(640, 1, ("order" + std::to_string(i)).c_str());
        rows.col(i) = arma::vec(rows.col(i)).elem(arma::sort_index(places));
    }
    EXPECT_GT(error_at(rows, true, true), 0.97 * error_at(rows, false, false));
}

TEST(CausalCodec, StepsAreFoundForTheBitsThatAreAsked) {
    const arma::mat rows = causal_rows(1024, 16);
    for (const double bits : {1.5, 2.5, 4.0}) {
        const CausalCode code = encode_causal_at(bits, rows, {16}, quick(), {});
        EXPECT_NEAR(bits_an_entry(code, rows), bits, 0.03);
    }
    EXPECT_NO_THROW((void)encode_causal_at(2.0, arma::mat(200, 4, arma::fill::zeros), {4}, quick(), {}));
}

TEST(CausalCodec, TheStepOfAPlanIsThatOfBlocksLikeTheFirst) {
    const arma::mat rows = causal_rows(128, 16);
    for (const auto& [bits, blocks] : {std::pair{1.5, 6.0}, {3.0, 6.0}, {2.0, 1.25}}) {
        const int step = expected_causal_step(bits, blocks, rows, {16}, quick(), {});
        // Each count from a sequence of its own.
        const auto last_block = [&](const arma::mat& all) {
            return 8.0 * static_cast<double>(encode_causal(all, {16}, quick(), {step, {}}).blocks.back().size());
        };
        const double first = last_block(rows);
        const double known = last_block(arma::join_cols(rows, rows));
        const double second_half = first - last_block(rows.head_rows(64));
        const double all = first + (blocks - 1.0) / 2.0 * (known + 2.0 * second_half);
        EXPECT_NEAR(all / (blocks * 128 * 16), bits, 0.011);
        EXPECT_GT(first / (128.0 * 16), bits);
    }
    EXPECT_THROW((void)expected_causal_step(2.0, 6.0, rows.head_rows(127), {16}, quick(), {}), Error);
}

TEST(CausalCodec, TheStateTakesFourMatricesOfDoubles) {
    const auto bytes = [](std::size_t columns) {
        const arma::mat rows = causal_rows(128, columns);
        const CausalDecoder decoder({columns}, quick(), CausalEncoder({columns}, quick(), {}, rows.row(0)).header());
        return static_cast<double>(decoder.state_bytes());
    };
    // Sums of products and of lagged products, vectors as rows and as columns; the rest grows with the columns.
    const double small = bytes(64);
    EXPECT_NEAR(bytes(128) - small, 8.0 * 4 * (128 * 128 - 64 * 64), 0.03 * small);
    EXPECT_GT(small, 8.0 * 4 * 64 * 64);
}

TEST(CausalCodec, TheFirstTokenIsExactInHalfPrecision) {
    const arma::mat rows = arma::conv_to<arma::mat>::from(arma::round(causal_rows(140, 6) * 16.0) / 16.0);
    const arma::mat decoded = decode_causal(encode_causal(rows, {6}, quick(), {.step = 512}), {6}, quick());
    EXPECT_TRUE(arma::approx_equal(decoded.row(0), rows.row(0), "absdiff", 0.0));
    arma::mat large = rows;
    large(0, 2) = 1e6;
    EXPECT_THROW((void)encode_causal(large, {6}, quick(), {}), Error);
}

TEST(CausalCodec, InputThatCannotBeCodedIsRejected) {
    arma::mat rows = causal_rows(140, 6);
    rows(135, 2) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW((void)encode_causal(rows, {6}, quick(), {}), Error);
    rows = causal_rows(140, 6);
    EXPECT_THROW((void)encode_causal(rows, {6}, {.freeze = 100}, {}), Error);
    EXPECT_THROW((void)encode_causal(rows, {6}, {.update = 12}, {}), Error);
    EXPECT_THROW((void)encode_causal(rows, {6}, {.lambda = -1.0}, {}), Error);
    EXPECT_THROW((void)encode_causal(rows, {6}, quick(), {.step = 20000}), Error);
    EXPECT_THROW((void)encode_causal(rows, {5}, quick(), {}), Error);
    EXPECT_THROW((void)encode_causal(arma::mat(0, 6), {6}, quick(), {}), Error);
    CausalCode code = encode_causal(rows, {6}, quick(), {});
    code.tokens = 400;
    EXPECT_THROW((void)decode_causal(code, {6}, quick()), Error);
    EXPECT_THROW((void)CausalDecoder({7}, quick(), code.header), Error);
}

TEST(CausalCodecStability, GivesTheSameBytesAndNumbersOnEveryMachine) {
    // Rows of rounded normals and their running sums, without a product whose order a library chooses.
    constexpr std::size_t m = 20;
    arma::mat rows = arma::round(causal_normals(300, m, "bytes") * 64.0);
    for (std::size_t i = 1; i < m; ++i) rows.col(i) += 0.5 * rows.col(i - 1);
    const CausalShape shape{m, std::vector<std::uint16_t>(m, 0)};
    const CausalCode code = encode_causal(rows, shape, quick(), {.step = 1400, .exponents = {3}});
    std::uint64_t digest = 14695981039346656037ULL;
    const auto mix = [&](std::uint64_t word) { digest = (digest ^ word) * 1099511628211ULL; };
    for (const auto& block : code.blocks)
        for (const std::uint8_t byte : block) mix(byte);
    for (const double number : decode_causal(code, shape, quick())) mix(std::bit_cast<std::uint64_t>(number));
    EXPECT_EQ(digest, 13376070195800220416ULL);
}

TEST(CausalCodec, DamagedBytesGiveAnErrorOrOtherNumbers) {
    const arma::mat rows = causal_rows(140, 3);
    const CausalCode code = encode_causal(rows, {3}, quick(), {.step = 256});
    const stream::Stream draws(stream::StudySeed::parse("0x2C"), "damage", stream::Role::noise, 0);
    int errors = 0;
    int decoded = 0;
    for (std::uint32_t trial = 0; trial < 10000; ++trial) {
        const auto words = draws.words(trial);
        CausalCode damaged = code;
        const std::size_t which = words[0] % (code.blocks.size() + 1);
        auto& bytes = which == code.blocks.size() ? damaged.header : damaged.blocks[which];
        bytes[words[1] % bytes.size()] ^= static_cast<std::uint8_t>(1U << words[2] % 8);
        if (words[2] % 16 == 15) bytes.resize(words[3] % bytes.size());
        try {
            const arma::mat found = decode_causal(damaged, {3}, quick());
            ASSERT_TRUE(found.is_finite());
            ++decoded;
        } catch (const Error& error) {
            ASSERT_EQ(error.kind(), ErrorKind::input) << error.what();
            ++errors;
        }
    }
    EXPECT_GT(errors, 1000);
    EXPECT_GT(decoded, 100);
}

}  // namespace
}  // namespace spiked::estimators
