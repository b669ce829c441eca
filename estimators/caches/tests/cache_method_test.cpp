// Low-rank caches: bits and codes computed by hand, errors compared with tails of a spectrum, and rejected input.
#include "estimators/caches/cache_method.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/text/tests/option_limits.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

CacheCoder coder_of(std::string_view name, double bits, std::size_t channels, const arma::mat& calibration) {
    const CacheMethod method = cache_method(name);
    method.check_bits(bits);
    return cache_coder(method, channels, bits, {}, calibration);
}

std::uint64_t bits_of_item(const Encoded& encoded, Item item) { return encoded.ledger.bits(item); }

TEST(CacheMethod, BitsByHand) {
    constexpr std::size_t tokens = 43;
    constexpr std::size_t channels = 16;
    const arma::mat rows = gaussian(tokens, channels, 1);
    const arma::mat other = gaussian(50, channels, 2);
    const auto check = [&](std::string_view name, double bits, std::vector<std::pair<Item, std::uint64_t>> expected) {
        SCOPED_TRACE(name);
        const CacheCoder coder = coder_of(name, bits, channels, other);
        const Encoded encoded = coder.sequence.encode(rows);
        std::uint64_t sum = 0;
        for (const auto& [item, count] : expected) {
            EXPECT_EQ(bits_of_item(encoded, item), count) << enum_name(item);
            sum += count;
        }
        const std::uint64_t whole = (sum + 7) / 8 * 8;
        EXPECT_EQ(bits_of_item(encoded, Item::padding), whole - sum);
        EXPECT_EQ(encoded.ledger.total(), whole);
        EXPECT_EQ(8 * encoded.bytes.size(), whole);
    };
    check("palu:rank=5:latents=tq-mse", 3, {{Item::norms, 16 * tokens}, {Item::indices, 3 * 5 * tokens}});
    check("palu:rank=5:latents=fp16", 3, {{Item::indices, 16 * 5 * tokens}});
    // A token with fewer latent entries than a group of 64 has one minimum and one scale.
    check("palu:rank=8", 2, {{Item::indices, 2 * 8 * tokens}, {Item::zeros, 16 * tokens}, {Item::scales, 16 * tokens}});
    check("cskv:rank=4:window=8:latents=fp16", 2,
          {{Item::residual_window, 16 * 8 * channels}, {Item::indices, 16 * 4 * (tokens - 8)}});
    check("cskv:window=100", 2, {{Item::residual_window, 16 * tokens * channels}});
    check("ojakv:rank=4:sinks=1:window=2:latents=tq-mse", 2,
          {{Item::residual_window, 16 * 3 * channels},
           {Item::codebooks, 16 * 4 * channels},
           {Item::norms, 16 * (tokens - 3)},
           {Item::indices, 2 * 4 * (tokens - 3)}});
    // Defaults of the table: half the channels, 4 first and 32 last tokens.
    check("ojakv:latents=fp16", 2,
          {{Item::residual_window, 16 * 36 * channels},
           {Item::codebooks, 16 * 8 * channels},
           {Item::indices, 16 * 8 * (tokens - 36)}});
    check("cskv:latents=fp16", 2,
          {{Item::residual_window, 16 * 32 * channels}, {Item::indices, 16 * 8 * (tokens - 32)}});
    check("xkv:rank=3", 2,
          {{Item::ranks, 16}, {Item::singular_values, 3 * 16}, {Item::factor_indices, 2 * 3 * (tokens + channels)}});
    check("xkv:rank=3:factors=fp16", 2,
          {{Item::ranks, 16}, {Item::singular_values, 3 * 16}, {Item::factor_indices, 16 * 3 * (tokens + channels)}});

    const CacheCoder kvtc = coder_of("kvtc:sinks=2:window=3", 2, channels, other);
    const Encoded encoded = kvtc.sequence.encode(rows);
    EXPECT_EQ(bits_of_item(encoded, Item::residual_window), 16U * 5 * channels);
    EXPECT_EQ(encoded.ledger.total(), 8 * encoded.bytes.size());
    EXPECT_EQ(bits_of_item(encoded, Item::residual_window) + bits_of_item(encoded, Item::indices),
              encoded.ledger.total());
    EXPECT_EQ(kvtc.shared_bits, 16 * (kvtc.rank * channels + channels) + 32);

    EXPECT_EQ(coder_of("palu:rank=5", 2, channels, other).shared_bits, 16U * 5 * channels);
    EXPECT_EQ(coder_of("xkv:rank=5", 2, channels, {}).shared_bits, 0U);

    // Heads of a layer and layers that are joined by default; 0: all.
    for (const auto& [name, heads, layers] : {std::tuple<const char*, std::size_t, std::size_t>{"palu", 4, 1},
                                              {"cskv", 0, 1},
                                              {"ojakv", 0, 1},
                                              {"xkv", 0, 4},
                                              {"kvtc", 0, 1}}) {
        EXPECT_EQ(cache_method(name).heads, heads) << name;
        EXPECT_EQ(cache_method(name).layers, layers) << name;
    }
}

TEST(CacheMethod, FullRankIsExactAndALowerRankLosesTheTail) {
    constexpr std::size_t channels = 24;
    const arma::mat rows = gaussian(60, channels, 3) * arma::diagmat(arma::logspace(1.0, -1.0, channels));
    const arma::vec values = arma::svd(rows);
    const auto tail = [&](std::size_t rank) { return arma::norm(values.tail(channels - rank)) / arma::norm(values); };
    constexpr double half_precision = 1.5e-3;
    // When calibrated on itself, which a study rejects, palu is the best projection: its error is the tail of the
    // singular values.
    for (const std::size_t rank : {std::size_t{3}, std::size_t{12}, channels}) {
        SCOPED_TRACE(rank);
        const std::string r = std::to_string(rank);
        for (const std::string& name :
             {"palu:rank=" + r + ":latents=fp16", "cskv:window=0:rank=" + r + ":latents=fp16",
              "ojakv:rate=0:sinks=0:window=0:rank=" + r + ":latents=fp16", "xkv:rank=" + r + ":factors=fp16"}) {
            const double error = relative_error(through(coder_of(name, 2, channels, rows).sequence, rows), rows);
            EXPECT_NEAR(error, tail(rank), half_precision) << name;
        }
    }
    EXPECT_GT(tail(12), 10.0 * half_precision);
    // Tokens kept in fp16 are exact for any rank.
    const arma::mat window = through(coder_of("cskv:rank=1:window=9", 1, channels, rows).sequence, rows);
    EXPECT_LT(relative_error(window.tail_rows(9), rows.tail_rows(9)), half_precision);
    EXPECT_GT(relative_error(window.head_rows(51), rows.head_rows(51)), 0.1);
    const arma::mat ends = through(coder_of("kvtc:sinks=4:window=5", 0.25, channels, rows).sequence, rows);
    EXPECT_LT(relative_error(ends.head_rows(4), rows.head_rows(4)), half_precision);
    EXPECT_LT(relative_error(ends.tail_rows(5), rows.tail_rows(5)), half_precision);
    EXPECT_GT(relative_error(ends.rows(4, 54), rows.rows(4, 54)), 0.1);
}

TEST(CacheMethod, DirectionsOutsideTheCalibrationAreLost) {
    constexpr std::size_t channels = 20;
    arma::mat seen(40, channels, arma::fill::zeros);
    seen.head_cols(10) = gaussian(40, 10, 4);
    arma::mat unseen(30, channels, arma::fill::zeros);
    unseen.tail_cols(10) = gaussian(30, 10, 5);
    const CacheCoder palu = coder_of("palu:rank=10:latents=fp16", 2, channels, seen);
    EXPECT_LT(relative_error(through(palu.sequence, seen), seen), 1.5e-3);
    EXPECT_NEAR(relative_error(through(palu.sequence, unseen), unseen), 1.0, 1e-3);
    // The sequence's own basis contains it.
    EXPECT_LT(relative_error(through(coder_of("xkv:rank=10:factors=fp16", 2, channels, {}).sequence, unseen), unseen),
              1.5e-3);
}

TEST(CacheMethod, AnOnlineBasisFollowsTheSequence) {
    constexpr std::size_t channels = 20;
    arma::mat seen(40, channels, arma::fill::zeros);
    seen.head_cols(10) = gaussian(40, 10, 9);
    // The directions are half outside the calibrated subspace: a fixed basis loses half the energy.
    arma::mat tilted(640, channels);
    tilted.head_cols(10) = gaussian(640, 10, 10);
    tilted.tail_cols(10) = tilted.head_cols(10);
    const auto error = [&](std::string_view name) {
        return relative_error(through(coder_of(name, 2, channels, seen).sequence, tilted), tilted);
    };
    EXPECT_NEAR(error("palu:rank=10:latents=fp16"), std::sqrt(0.5), 1e-3);
    EXPECT_NEAR(error("ojakv:rank=10:latents=fp16:rate=0:sinks=0:window=0"), std::sqrt(0.5), 1e-3);
    EXPECT_LT(error("ojakv:rank=10:latents=fp16:rate=0.5:sinks=0:window=0"), 0.4);
}

/// Calibration with variances 16 and 1 along the axes and mean (1, -2).
arma::mat two_variances() { return {{5, -1}, {5, -3}, {-3, -1}, {-3, -3}}; }

TEST(CacheMethod, WaterFillingByHand) {
    // 2 bits per entry: 1/2 log2(16/t) + 1/2 log2(1/t) = 2 * 2 gives t = 1/4.
    const double step = std::sqrt(12.0 / 4.0);
    const arma::mat rows = {{1, -2}, {1 + 0.49 * step, -2}, {1 + 0.51 * step, -2 - 1.4 * step}, {1 - 200 * step, 60}};
    const arma::mat expected = {{1, -2}, {1, -2}, {1 + step, -2 - step}, {1 - 200 * step, -2 + 36 * step}};
    const CacheCoder fine = coder_of("kvtc", 2, 2, two_variances());
    EXPECT_EQ(fine.rank, 2U);
    EXPECT_LT(arma::abs(through(fine.sequence, rows) - expected).max(), 1e-3);
    // Half a bit: 1/2 log2(16/t) = 1 gives t = 4, above the variance 1, which is left out.
    const double coarse_step = std::sqrt(48.0);
    const CacheCoder coarse = coder_of("kvtc", 0.5, 2, two_variances());
    EXPECT_EQ(coarse.rank, 1U);
    const arma::mat far = {{1 + 2.2 * coarse_step, 50}};
    EXPECT_LT(arma::abs(through(coarse.sequence, far) - arma::mat{{1 + 2 * coarse_step, -2}}).max(), 1e-3);
}

TEST(CacheMethod, KvtcOfNormalEntriesIsNearTheEntropyCodedLaw) {
    // White entries: D 4^R of a uniform quantizer at its entropy is at most pi e / 6 = 1.4233, Shannon's bound 1; a
    // general-purpose coder of bytes adds to the rate.
    constexpr std::size_t channels = 8;
    const arma::mat rows = gaussian(4096, channels, 6);
    const CacheCoder kvtc = coder_of("kvtc", 3, channels, gaussian(20000, channels, 7));
    const Encoded encoded = kvtc.sequence.encode(rows);
    const double rate = static_cast<double>(encoded.ledger.total()) / static_cast<double>(rows.n_elem);
    const double error = relative_error(kvtc.sequence.decode(encoded.bytes, rows.n_rows), rows);
    const double excess = rate + std::log2(error);
    EXPECT_GT(excess, 0.0) << "better than Shannon allows: " << rate << " bits for " << error;
    EXPECT_LT(excess, 0.5 * std::log2(1.4233) + 0.25) << rate << " bits for " << error;
}

TEST(CacheMethod, EmptyAndConstantSequences) {
    const arma::mat constant(10, 6, arma::fill::value(2.5));
    for (const char* name : {"palu", "cskv:window=2", "ojakv:window=2", "xkv:rank=2", "kvtc"}) {
        SCOPED_TRACE(name);
        const CacheCoder coder = coder_of(name, 4, 6, constant);
        EXPECT_LT(relative_error(through(coder.sequence, constant), constant), 0.2);
        EXPECT_EQ(coder.sequence.decode(coder.sequence.encode(arma::mat(0, 6)).bytes, 0).n_rows, 0U);
    }
    EXPECT_EQ(through(coder_of("kvtc", 4, 6, constant).sequence, constant).max(), 2.5);
}

TEST(CacheMethod, RejectsWhatItCannotDo) {
    const arma::mat data = gaussian(10, 8, 8);
    const auto usage = [&](std::string_view name, double bits) {
        return message_of([&] { (void)coder_of(name, bits, 8, data); }, ErrorKind::usage);
    };
    EXPECT_NE(usage("palu:ranks=2", 2).find("rank"), std::string::npos);
    EXPECT_NE(usage("palu:rank=9", 2).find("1 to 8"), std::string::npos);
    EXPECT_NE(usage("palu:rank=0", 2).find("of at least 1"), std::string::npos);
    EXPECT_NE(usage("palu:latents=tq", 2).find("unknown quantizer"), std::string::npos);
    EXPECT_NE(usage("palu", 2.5).find("2.5"), std::string::npos);
    EXPECT_NE(usage("xkv:factors=fp32", 2).find("fp16"), std::string::npos);
    EXPECT_NE(usage("xkv", 9).find("1 to 8"), std::string::npos);
    EXPECT_NE(usage("kvtc", 0.1).find("0.25"), std::string::npos);
    EXPECT_FALSE(is_cache_method("eoptshrink+tq-mse"));
    EXPECT_TRUE(is_cache_method("unrope+palu:rank=3"));
    EXPECT_TRUE(cache_method("unrope+palu").unrope);
    EXPECT_FALSE(cache_method("palu").unrope);

    arma::mat broken = data;
    broken(3, 2) = std::nan("");
    EXPECT_NE(usage("ojakv:step=0", 2).find("step"), std::string::npos);
    for (const char* name : {"palu", "cskv", "ojakv:window=2", "xkv", "kvtc"}) {
        SCOPED_TRACE(name);
        const CacheCoder coder = coder_of(name, 2, 8, data);
        message_of([&] { (void)coder.sequence.encode(broken); }, ErrorKind::input);
        auto bytes = coder.sequence.encode(data).bytes;
        bytes.push_back(0);
        message_of([&] { (void)coder.sequence.decode(bytes, 10); }, ErrorKind::input);
        bytes.resize(bytes.size() / 2);
        message_of([&] { (void)coder.sequence.decode(bytes, 10); }, ErrorKind::input);
    }
    message_of([&] { (void)coder_of("xkv:rank=6", 2, 8, {}).sequence.encode(data.head_rows(5)); }, ErrorKind::usage);
}

TEST(CacheMethod, RejectOtherValuesOfTheirOptionsWhenANameIsParsed) {
    std::size_t tried = 0;
    for (const auto& entry : cache_methods())
        for (const auto& option : entry.options)
            for (const auto& text : texts_not_accepted(option)) {
                const std::string name = entry.name + ":" + text;
                EXPECT_NE(message_of([&] { (void)cache_method(name); }, ErrorKind::usage).find(option.key),
                          std::string::npos)
                    << name;
                ++tried;
            }
    EXPECT_GT(tried, 20U);
}

TEST(CacheMethod, ListTheOptionsOfTheQuantizerOfTheirLatents) {
    const auto has = [](const char* name, const char* option) {
        return has_option(cache_options(cache_method(name)), option);
    };
    EXPECT_TRUE(has("palu", "--group"));
    EXPECT_FALSE(has("palu", "--rotation"));
    EXPECT_TRUE(has("unrope+palu:latents=tq-mse", "--rotation"));
    EXPECT_FALSE(has("palu:latents=fp16", "--norm"));
    EXPECT_TRUE(has("xkv", "--norm"));
    EXPECT_FALSE(has("kvtc", "--factor-bits"));
}

}  // namespace
}  // namespace spiked::estimators
