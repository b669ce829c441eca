#include "codec/cache/compressed_cache.hpp"

#include <gtest/gtest.h>

#include "core/files/tests/scratch.hpp"
#include "sim/random/normal.hpp"

namespace spiked::codec {
namespace {

using sim::CachedHead;

constexpr std::size_t dim = 32;

sim::LlamaConfig shape(std::size_t layers = 1) {
    sim::LlamaConfig config;
    config.layers = layers;
    config.heads = 2;
    config.kv_heads = 1;
    config.head_dim = dim;
    return config;
}

arma::fmat gaussian_rows(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat matrix(rows, columns);
    stream::fill_normal(stream::Stream({}, "cache", stream::Role::noise, replicate), {matrix.memptr(), matrix.n_elem});
    return arma::conv_to<arma::fmat>::from(matrix);
}

CompressedCache cache(const std::string& method, double budget, std::size_t layers = 1, double bits = 2.0) {
    return {shape(layers), {estimators::parse_kept_and_coded(method), bits, budget, {}, {}, 64}};
}

/// Plays the model's part in a forward pass: each block adds 64 tokens and the attention of 64 queries of two heads to
/// all kept tokens, and then calls the eviction of the cache.
struct FakeModel {
    FakeModel() = default;
    explicit FakeModel(CompressedCache& cache) { join(cache); }
    void join(CompressedCache& cache) { cache.attach(options); }
    void block(std::size_t layer = 0) {
        cached.keys = arma::join_cols(cached.keys, gaussian_rows(64, dim, 2 * seen));
        cached.values = arma::join_cols(cached.values, gaussian_rows(64, dim, 2 * seen + 1));
        for (std::size_t t = 0; t < 64; ++t) cached.tokens.push_back(seen + t);
        seen += 64;
        for (std::size_t head = 0; head < 2; ++head) {
            const arma::fmat weights = arma::abs(gaussian_rows(64, cached.tokens.size(), 1000 + seen + head));
            options.attention({layer, head, seen - 64, weights, cached.tokens});
        }
        options.evict(layer, 0, seen, cached);
    }
    sim::ForwardOptions options;
    CachedHead cached;
    std::size_t seen = 0;
};

double full_bits(std::size_t seen) { return 32.0 * dim * static_cast<double>(seen); }

TEST(CompressedCache, EvictsToItsBudgetAndCountsEveryBit) {
    for (const auto& eviction : estimators::evictions()) {
        if (eviction.entry.name == "pyramidkv") continue;  // its budget holds over all layers, not for each
        for (const double budget : {0.02, 0.1, 0.37, 0.5}) {
            auto own = cache(eviction.entry.name, budget);
            FakeModel model(own);
            double bits = 0.0;
            for (std::size_t blocks = 1; blocks <= 4; ++blocks) {
                model.block();
                const std::size_t rows = model.cached.tokens.size();
                ASSERT_EQ(model.cached.keys.n_rows, rows);
                ASSERT_EQ(model.cached.values.n_rows, rows);
                const double row =
                    32.0 * dim + (eviction.entry.name == "h2o" ? 32.0 : 0.0);  // h2o stores a score per row
                const double stored = row * static_cast<double>(rows) + static_cast<double>(model.seen);
                bits += stored;
                EXPECT_LE(stored, budget * full_bits(model.seen)) << eviction.entry.name << budget;
                // The budget has no room for another row.
                EXPECT_GT(stored + row, budget * full_bits(model.seen)) << eviction.entry.name << budget;
                EXPECT_EQ(own.stored_bits().total(), bits);
            }
            EXPECT_EQ(own.entries(), 2.0 * dim * (64 + 128 + 192 + 256));
        }
    }
}

TEST(CompressedCache, ABudgetOfOneChangesNothing) {
    for (const auto& eviction : estimators::evictions()) {
        auto own = cache(eviction.entry.name, 1.0);
        FakeModel model(own);
        for (std::size_t blocks = 0; blocks < 3; ++blocks) model.block();
        EXPECT_EQ(model.cached.tokens.size(), 192);
        EXPECT_TRUE(arma::approx_equal(model.cached.keys.rows(64, 127), gaussian_rows(64, dim, 128), "absdiff", 0.0));
        EXPECT_TRUE(arma::approx_equal(model.cached.values.rows(64, 127), gaussian_rows(64, dim, 129), "absdiff", 0.0));
        EXPECT_EQ(own.stored_bits().total() / own.entries(), 16.0);
    }
}

TEST(CompressedCache, ABudgetWithoutRoomForOneTokenIsRejected) {
    const double least = (32.0 * dim + 64.0) / full_bits(64);
    auto own = cache("snapkv", least);
    FakeModel model(own);
    own.require_room(64);
    model.block();
    EXPECT_EQ(model.cached.tokens.size(), 1);
    EXPECT_EQ(own.stored_bits().total(), 32.0 * dim + 64.0);
    for (const char* method : {"snapkv", "snapkv+tq-mse"}) {
        auto less = cache(method, method == std::string("snapkv") ? 0.99 * least : 1e-4);
        FakeModel rejected(less);
        sim::expect_error(ErrorKind::usage, [&] { rejected.block(); }, {"--budget ", "tokens of a head", "takes"});
    }
    sim::expect_error(ErrorKind::usage, [&] { cache("h2o", 0.99 * least).require_room(64); },
                      {"has no room for one of 64 tokens", "or more"});
    cache("h2o+tq-mse", 0.99 * least).require_room(64);  // a coded row takes fewer bits
}

TEST(CompressedCache, BudgetsOfLayersAverageToTheRequestedBudget) {
    auto own = cache("pyramidkv", 0.4, 3);
    std::vector<std::size_t> rows;
    for (std::size_t layer = 0; layer < 3; ++layer) {
        FakeModel model(own);
        model.block(layer);
        rows.push_back(model.cached.tokens.size());
    }
    // There is room for 25 rows per layer on average: the last 13 in every layer, and 12 more on average.
    EXPECT_EQ(rows, (std::vector<std::size_t>{13 + 24, 13 + 12, 13}));
    EXPECT_LE(own.stored_bits().total(), 0.4 * 16.0 * own.entries());
    EXPECT_GT(own.stored_bits().total(), 0.35 * 16.0 * own.entries());
}

TEST(CompressedCache, EveryLayerOfACodedPyramidKeepsTheLastTokens) {
    for (const bool once : {false, true})
        for (const char* method : {"pyramidkv+tq-mse", "pyramidkv+kivi", "pyramidkv+svd:1+tq-mse"}) {
            auto own = cache(method, once ? 0.1 : 0.7, 3);
            std::vector<std::size_t> rows;
            for (std::size_t layer = 0; layer < 3; ++layer) {
                FakeModel model;
                model.options.at_once = once;
                model.join(own);
                model.block(layer);
                rows.push_back(model.cached.tokens.size());
                // Every layer keeps the last tokens.
                const std::vector<std::size_t> last(model.cached.tokens.end() - 5, model.cached.tokens.end());
                EXPECT_EQ(last, (std::vector<std::size_t>{59, 60, 61, 62, 63})) << method << layer;
            }
            EXPECT_LE(own.stored_bits().total(), (once ? 0.1 : 0.7) * 16.0 * own.entries()) << method;
            EXPECT_GE(rows[0], rows[1]) << method;
            EXPECT_GE(rows[1], rows[2]) << method;
            EXPECT_GE(rows[2], 5) << method;
        }
    // If the mean budget has room for all tokens, every layer keeps all of them.
    auto own = cache("pyramidkv+tq-mse", 0.5, 3);
    for (std::size_t layer = 0; layer < 3; ++layer) {
        FakeModel model(own);
        model.block(layer);
        EXPECT_EQ(model.cached.tokens.size(), 64);
    }
}

/// --only and --layers exclude layers, and dumps contain only the last one.
TEST(CompressedCache, BudgetsOfLayersAverageOverThoseThatAreCompressed) {
    for (const std::vector<std::size_t>& layers : {std::vector<std::size_t>{0}, {3}, {0, 3}, {1, 2, 3}})
        for (const double budget : {0.04, 0.2, 0.4, 0.7}) {
            CachePart only;
            for (const std::size_t layer : layers)
                for (const sim::Side side : {sim::Side::key, sim::Side::value}) only.emplace(layer, side);
            CompressedCache own(shape(4), {estimators::parse_kept_and_coded("pyramidkv"), 2, budget, {}, only, 64});
            for (std::size_t layer = 0; layer < 4; ++layer) {
                FakeModel model(own);
                model.block(layer);
            }
            EXPECT_EQ(own.entries(), 2.0 * 64 * dim * static_cast<double>(layers.size()));
            EXPECT_LE(own.stored_bits().total(), budget * 16.0 * own.entries());
            // The budget has no room for one more row per layer.
            EXPECT_GT(own.stored_bits().total() + static_cast<double>(layers.size()) * 32.0 * dim,
                      budget * 16.0 * own.entries());
        }
}

TEST(CompressedCache, PassesTheMeanAttentionOverAGroupOfHeadsToTheEviction) {
    auto own = cache("h2o", 0.5);
    sim::ForwardOptions options;
    own.attach(options);
    const arma::fmat keys = gaussian_rows(8, dim, 0);
    CachedHead cached{keys, keys, {0, 1, 2, 3, 4, 5, 6, 7}};
    arma::fmat one(8, 8, arma::fill::zeros), other = one;
    one(7, 2) = 0.9F;  // this head alone would prefer this token
    one(6, 4) = 0.8F;
    other(3, 4) = 0.3F;  // the mean over both heads prefers this one
    options.attention({0, 0, 0, one, cached.tokens});
    options.attention({0, 1, 0, other, cached.tokens});
    options.evict(0, 0, 8, cached);
    EXPECT_EQ(cached.tokens, (std::vector<std::size_t>{4, 6, 7}));
    EXPECT_TRUE(arma::approx_equal(cached.keys, keys.rows(arma::uvec{4, 6, 7}), "absdiff", 0.0));
}

/// The questions of a prompt may be longer than the observation window of 32 tokens.
TEST(CompressedCache, PassesTheAnnouncedNumberOfLastQueriesToTheEviction) {
    for (const bool announced : {false, true}) {
        auto own = cache("snapkv", 0.5);
        if (announced) own.observe_last(50);
        sim::ForwardOptions options;
        own.attach(options);
        const arma::fmat keys = gaussian_rows(64, dim, 0);
        CachedHead cached{keys, keys, {}};
        for (std::size_t t = 0; t < 64; ++t) cached.tokens.push_back(t);
        arma::fmat weights(64, 64, arma::fill::zeros);
        weights(64 - 50, 20) = 1.0F;
        for (const std::size_t head : {0UL, 1UL}) options.attention({0, head, 0, weights, cached.tokens});
        options.evict(0, 0, 64, cached);
        EXPECT_EQ(std::count(cached.tokens.begin(), cached.tokens.end(), 20), announced ? 1 : 0);
    }
}

TEST(CompressedCache, MergesIntoMeansOverTokens) {
    auto own = cache("dmc", 0.6);
    sim::ForwardOptions options;
    own.attach(options);
    arma::fmat keys(4, dim, arma::fill::zeros);
    keys(0, 0) = 1.0F;
    keys(1, 0) = 3.0F;
    keys(2, 1) = 1.0F;
    keys(3, 2) = 1.0F;
    CachedHead cached{keys, 2.0F * keys, {0, 1, 2, 3}};
    const auto attend = [&] {
        const arma::fmat weights(4, cached.tokens.size(), arma::fill::ones);
        for (const std::size_t head : {0UL, 1UL}) options.attention({0, head, 0, weights, cached.tokens});
    };
    attend();
    options.evict(0, 0, 4, cached);  // room for 2 rows of 4
    ASSERT_EQ(cached.tokens.size(), 2);
    EXPECT_EQ(cached.tokens[0], 0);
    // Tokens that were merged into one row keep their weights, also when rows are merged again.
    const std::size_t runs = cached.tokens[1];
    arma::frowvec mean = arma::mean(keys.head_rows(runs), 0);
    EXPECT_TRUE(arma::approx_equal(cached.keys.row(0), mean, "absdiff", 1e-6F));
    EXPECT_TRUE(arma::approx_equal(cached.values.row(0), 2.0F * mean, "absdiff", 1e-6F));
    auto tight = cache("dmc", 0.3);
    sim::ForwardOptions second;
    tight.attach(second);
    options = second;
    attend();
    second.evict(0, 0, 4, cached);
    ASSERT_EQ(cached.tokens.size(), 1);
    EXPECT_TRUE(arma::approx_equal(cached.keys.row(0), arma::frowvec(arma::mean(keys, 0)), "absdiff", 1e-6F));
}

TEST(CompressedCache, KeepsMoreRowsIfTheyAreCoded) {
    auto plain = cache("streaming", 0.1);
    auto coded = cache("streaming+tq-mse", 0.1);
    FakeModel one(plain), other(coded);
    for (std::size_t blocks = 0; blocks < 3; ++blocks) {
        one.block();
        other.block();
        EXPECT_GT(other.cached.tokens.size(), 4 * one.cached.tokens.size());
    }
    EXPECT_LE(coded.stored_bits().total(), 0.1 * 16.0 * coded.entries());
    EXPECT_GT(coded.stored_bits().total(), 0.09 * 16.0 * coded.entries());
    // The rows left of the first block were coded three times, each time from their exact values.
    auto once = cache("streaming+tq-mse", 1.0);
    FakeModel all(once);
    for (std::size_t blocks = 0; blocks < 3; ++blocks) all.block();
    ASSERT_EQ(other.cached.tokens[1], 1);
    EXPECT_TRUE(arma::approx_equal(other.cached.keys.row(1), all.cached.keys.row(1), "absdiff", 1e-6F));
    EXPECT_FALSE(arma::approx_equal(all.cached.keys.row(1), gaussian_rows(64, dim, 0).row(1), "absdiff", 1e-2F));
    EXPECT_EQ(once.stored_bits().total() / once.entries(), 2.5);  // a norm of 16 bits for 32 entries
}

/// Everything that the next eviction needs counts as stored bits and against the budget.
TEST(CompressedCache, CountsTheBitsThatTheNextEvictionNeeds) {
    const auto ledger = [](const std::string& method, double budget, bool once) {
        auto own = cache(method, budget);
        FakeModel model;
        model.options.at_once = once;
        model.join(own);
        model.block();
        const CacheBits first = own.stored_bits();
        EXPECT_LE(first.total(), budget * full_bits(64)) << method;
        const auto rows = static_cast<double>(model.cached.tokens.size());
        return std::pair{first, rows};
    };
    for (const char* method : {"h2o", "h2o+tq-mse"}) {
        const auto [again, rows] = ledger(method, 0.12, false);
        EXPECT_EQ(again.scores, 32.0 * rows);
        EXPECT_EQ(again.exact, 0.0);
        EXPECT_EQ(again.positions, rows < 64.0 ? 64.0 : 0.0);
        EXPECT_EQ(ledger(method, 0.12, true).first.scores, 0.0);
    }
    EXPECT_EQ(ledger("h2o", 1.0, false).first.scores, 0.0);
    // Codes of whole blocks, and means of rows, must be computed again from the exact rows when a row is evicted.
    for (const char* method : {"snapkv+svd:1+tq-mse", "snapkv+kivi", "snapkv+kvquant", "snapkv+tcq", "dmc+tq-mse"}) {
        const auto [again, rows] = ledger(method, 0.4, false);
        EXPECT_EQ(again.exact, 32.0 * dim * rows) << method;
        const auto [once, more] = ledger(method, 0.4, true);
        EXPECT_EQ(once.exact, 0.0) << method;
        EXPECT_GT(more, rows) << method;
    }
    for (const char* method : {"snapkv+tq-mse", "snapkv+unrope+tq-mse", "snapkv+eden", "streaming"})
        EXPECT_EQ(ledger(method, 0.1, false).first.exact, 0.0) << method;
}

/// Groups of 2 or 4 tokens divide even a small block, but a row of a group cannot be decoded without the others.
TEST(CompressedCache, GroupsOfTokensNeedTheExactRows) {
    for (const std::size_t group : {1UL, 2UL, 3UL, 4UL, 7UL, 8UL}) {
        estimators::QuantizerOptions options;
        options.group = group;
        CompressedCache own(shape(), {estimators::parse_kept_and_coded("snapkv+kivi"), 2, 0.9, options, {}, 64});
        FakeModel model(own);
        model.block();
        const auto rows = static_cast<double>(model.cached.tokens.size());
        EXPECT_EQ(own.stored_bits().exact, group == 1 ? 0.0 : 32.0 * dim * rows) << group;
    }
}

TEST(CompressedCache, EachSequenceHasItsOwnRotations) {
    const arma::fmat rows = gaussian_rows(64, dim, 0);
    const auto read = [&](std::uint64_t sequence, sim::Side side) {
        auto own = cache("tq-mse", 1.0, 2);
        own.draw_rotations(sequence);
        sim::ForwardOptions options;
        own.attach(options);
        return options.keep({1, side, 0, 0}, rows);
    };
    std::vector<arma::fmat> different;
    for (const std::uint64_t sequence : {0UL, 1UL, 2UL})
        for (const sim::Side side : {sim::Side::key, sim::Side::value}) {
            different.push_back(read(sequence, side));
            EXPECT_TRUE(arma::approx_equal(different.back(), read(sequence, side), "absdiff", 0.0));
        }
    for (std::size_t i = 0; i < different.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            EXPECT_FALSE(arma::approx_equal(different[i], different[j], "absdiff", 0.1F)) << i << j;
}

TEST(CompressedCache, SinksStayExactAndBitsFollowTheirPart) {
    const auto kept = [](CachePlan plan, std::size_t layer, sim::Side side, double& bits) {
        plan.how = estimators::parse_kept_and_coded("tq-mse");
        CompressedCache own(shape(2), plan);
        sim::ForwardOptions options;
        own.attach(options);
        const arma::fmat rows = gaussian_rows(128, dim, 7);
        const arma::fmat decoded = options.keep({layer, side, 0, 0}, rows);
        bits = own.stored_bits().total() / own.entries();
        return arma::fmat(decoded - rows);
    };
    double bits = 0.0;
    const double coded = 2.0 + 16.0 / dim;
    const arma::fmat error = kept({.bits = 2.0, .sinks = 3}, 0, sim::Side::key, bits);
    EXPECT_EQ(arma::abs(error.head_rows(3)).max(), 0.0F);
    EXPECT_GT(arma::fvec(arma::sum(arma::square(error.tail_rows(125)), 1)).min(), 0.1F);
    EXPECT_NEAR(bits, (3 * 16.0 + 125 * coded) / 128, 1e-9);
    const CachePlan more{.bits = 2.0, .extra_bits = {{{1, sim::Side::key}, 2.0}}};
    const float narrow = arma::norm(kept(more, 0, sim::Side::key, bits), "fro");
    EXPECT_NEAR(bits, coded, 1e-9);
    EXPECT_LT(arma::norm(kept(more, 1, sim::Side::key, bits), "fro"), 0.4F * narrow);  // 4^-2 of the square
    EXPECT_NEAR(bits, coded + 2.0, 1e-9);
}

TEST(CompressedCache, StreamsACausalTransformOfEachHead) {
    const sim::LlamaConfig model = shape();
    const CachePlan plan{estimators::parse_kept_and_coded("causal-klt"), 3.0, 1.0, {}, {}, 128};
    arma::fmat exact = gaussian_rows(384, dim, 7);
    exact.col(3) *= 20.0F;
    // Two sequences through one object give what two objects give.
    CompressedCache own(model, plan);
    std::vector<arma::fmat> decoded;
    std::vector<double> bits;
    for (std::size_t sequence = 0; sequence < 2; ++sequence) {
        sim::ForwardOptions options;
        own.attach(options);
        const double before = own.stored_bits().total();
        arma::fmat all;
        for (std::size_t t = 0; t < 384; t += 128) {
            const arma::fmat queries = gaussian_rows(128, 2 * dim, 9);
            const arma::fmat rows = exact.rows(t, t + 127);
            options.layer({0, t, queries, rows, rows});
            all = arma::join_cols(all, options.keep_layer(0, t, {rows, rows}).keys);
        }
        decoded.push_back(all);
        bits.push_back(own.stored_bits().total() - before);
    }
    EXPECT_EQ(bits[0], bits[1]);
    EXPECT_TRUE(arma::approx_equal(decoded[0], decoded[1], "absdiff", 0.0));
    EXPECT_EQ(own.entries(), 2.0 * 2 * 384 * dim);
    EXPECT_NEAR(bits[0] / (2.0 * 384 * dim), 3.0, 0.4);
    EXPECT_LT(arma::norm(decoded[0] - exact, "fro") / arma::norm(exact, "fro"), 0.1);
    // Where the number of tokens is known, all of them together take what is asked for.
    sim::ForwardOptions known;
    own.attach(known, 384);
    const double before = own.stored_bits().total();
    for (std::size_t t = 0; t < 384; t += 128)
        (void)known.keep_layer(0, t, {exact.rows(t, t + 127), exact.rows(t, t + 127)});
    EXPECT_NEAR((own.stored_bits().total() - before) / (2 * 384.0 * dim), 3.0, 0.03);
    sim::expect_error(
        ErrorKind::usage,
        [&] {
            CompressedCache(model, {estimators::parse_kept_and_coded("causal-klt"), 3.0, 1.0, {}, {}, 64});
        },
        {"blocks of 128 tokens", "leave --block out"});
    sim::expect_error(ErrorKind::usage, [] { (void)cache_requests({"causal-klt"}, {9.0}); }, {"0.25 to 8"});
    const auto rejected = [&](CachePlan wrong, const char* reason) {
        wrong.how = estimators::parse_kept_and_coded("causal-klt-joint");
        wrong.bits = 3.0;
        sim::expect_error(ErrorKind::usage, [&] { (void)CompressedCache(model, wrong); }, {reason, "together"});
    };
    rejected({.only = {{0, sim::Side::key}}}, "--only 0:key");
    rejected({.extra_bits = {{{0, sim::Side::value}, 1.0}}}, "--extra-bits 0:value=1");
}

TEST(CompressedCache, RejectsInvalidBudgetsAndCacheParts) {
    const auto rejected = [](auto action, std::string_view part) {
        sim::expect_error(ErrorKind::usage, action, {part});
    };
    rejected([] { (void)cache_requests({"snapkv"}, {2}, {0.0}); }, "--budget 0 is not possible");
    rejected([] { (void)cache_requests({"snapkv"}, {2}, {1.01}); }, "--budget 1.01 is not possible");
    rejected([] { (void)cache_requests({"tq-mse", "snapkv"}, {2}); }, "\"snapkv\" evicts and no budget is given");
    rejected([] { (void)cache_requests({"tq-mse"}, {2}, {0.5}); }, "no method evicts");
    rejected([] { (void)cache_requests({"snapkv+tq-mse"}, {2.5}, {0.5}); }, "2.5");
    rejected(
        [] {
            CompressedCache(shape(), {estimators::parse_kept_and_coded("h2o"), 16, 0.5, {}, {{0, sim::Side::key}}, 64});
        },
        "--only 0:key with \"h2o\"");
    EXPECT_EQ(cache_requests({"snapkv", "h2o+tq-mse"}, {2, 3}, {0.5})[0].bits, std::vector<double>{16.0});
}

}  // namespace
}  // namespace spiked::codec
