#include "sim/llama/llama_session.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/memory.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/llama/llama_dump.hpp"

namespace spiked::sim {
namespace {

/// A random model with three layers of two kv heads of 8, and a text of 40 tokens, as NumPy writes them.
class LlamaSessions : public testing::Test {
protected:
    LlamaSessions() : model_(written()) {
        const arma::rowvec row = read_matrix(scratch_.path("model/tokens.npy")).row(0);
        tokens_.assign(row.begin(), row.end());
    }
    [[nodiscard]] std::span<const std::int32_t> tokens(std::size_t first, std::size_t count) const {
        return std::span(tokens_).subspan(first, count);
    }
    /// Log-probabilities after each token, appended in parts.
    [[nodiscard]] arma::fmat rows(ForwardOptions options, const std::vector<std::size_t>& parts) const {
        arma::fmat result(tokens_.size(), model_.config().vocabulary, arma::fill::zeros);
        options.predicted = [&](std::size_t first, const arma::fmat& some) {
            result.rows(first, first + some.n_rows - 1) = some;
        };
        LlamaSession session(model_, options);
        for (const std::size_t part : parts) session.append(tokens(session.tokens(), part));
        EXPECT_EQ(session.tokens(), tokens_.size());
        return result;
    }

private:
    std::string written() {
        const std::string folder = scratch_.path("model");
        std::filesystem::create_directories(folder);
        const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/llama_in_numpy.py' '" +
                                 folder + "' untied 40 > '" + folder + "/out'";
        EXPECT_EQ(std::system(line.c_str()), 0);
        return folder;
    }

    ScratchFolder scratch_;

protected:
    Llama model_;
    std::vector<std::int32_t> tokens_;
};

float largest_change(const arma::fmat& a, const arma::fmat& b) { return arma::abs(a - b).max(); }

TEST_F(LlamaSessions, PartsGiveWhatOneAppendGivesOverAChangedCache) {
    using Call = std::tuple<std::size_t, Side, std::size_t, std::size_t, std::size_t>;
    const std::vector<std::size_t> by_token(40, 1);
    for (const bool with_context : {false, true})
        for (const bool at_once : {false, true}) {
            if (at_once && !with_context) continue;
            std::vector<Call> calls;
            ForwardOptions options{.block_tokens = 8, .at_once = at_once};
            if (with_context) options.context = 21;
            options.keep = [&](const CacheAddress& at, const arma::fmat& block) -> arma::fmat {
                calls.emplace_back(at.layer, at.side, at.head, at.first_token, block.n_rows);
                return 0.7F * block;
            };
            const arma::fmat whole = rows(options, {40});
            const auto of_whole = std::exchange(calls, {});
            EXPECT_EQ(of_whole.size(), 3U * 2U * 2U * (with_context ? 3U : 4U));
            for (const auto& parts : {by_token, std::vector<std::size_t>{3, 5, 1, 20, 11}}) {
                EXPECT_LT(largest_change(rows(options, parts), whole), 2e-5F);
                EXPECT_EQ(std::exchange(calls, {}), of_whole);
            }
            // The replaced blocks change the predictions, and do so from the first token after them on.
            const arma::fmat exact = rows({.block_tokens = 8}, {40});
            const std::size_t first = at_once ? 21 : 8;
            EXPECT_LT(largest_change(exact.head_rows(first), whole.head_rows(first)), 1e-5F);
            EXPECT_GT(largest_change(exact.row(first), whole.row(first)), 1e-3F);
        }
}

TEST_F(LlamaSessions, PartsEvictWhatOneAppendEvicts) {
    ForwardOptions options{.block_tokens = 8};
    options.evict = [](std::size_t, std::size_t, std::size_t seen, CachedHead& cached) {
        EXPECT_EQ(seen % 8, 0U);
        for (std::size_t row = cached.tokens.size(); row-- > 0;) {
            if (cached.tokens[row] % 3 != 1) continue;
            cached.keys.shed_row(row);
            cached.values.shed_row(row);
            cached.tokens.erase(cached.tokens.begin() + static_cast<std::ptrdiff_t>(row));
        }
    };
    const arma::fmat whole = rows(options, {40});
    EXPECT_LT(largest_change(rows(options, std::vector<std::size_t>(40, 1)), whole), 2e-5F);
    EXPECT_GT(largest_change(rows({.block_tokens = 8}, {40}), whole), 1e-2F);
}

TEST_F(LlamaSessions, AFullBlockIsReplacedWhenALaterTokenComes) {
    std::size_t calls = 0;
    ForwardOptions options{.block_tokens = 8};
    options.keep = [&](const CacheAddress&, const arma::fmat& block) {
        ++calls;
        return block;
    };
    LlamaSession session(model_, options);
    session.append(tokens(0, 8));
    EXPECT_EQ(calls, 0U);
    session.append(tokens(8, 1));
    EXPECT_EQ(calls, 12U);
    session.append(tokens(9, 7));
    EXPECT_EQ(calls, 12U);
    session.append(tokens(16, 1));
    EXPECT_EQ(calls, 24U);
}

TEST_F(LlamaSessions, TheLastPredictionIsTheLastRow) {
    const arma::fmat all = rows({.block_tokens = 8}, {40});
    LlamaSession session(model_, {.block_tokens = 8});
    for (std::size_t t = 0; t < 40; t += 5) {
        session.append(tokens(t, 5));
        const arma::frowvec last = session.log_probabilities();
        EXPECT_LT(arma::abs(last - all.row(t + 4)).max(), 1e-5F) << t;
        EXPECT_NEAR(arma::accu(arma::exp(arma::conv_to<arma::rowvec>::from(last))), 1.0, 1e-5);
    }
}

/// The reference runs the whole sequence anew for each token.
TEST_F(LlamaSessions, GreedyTextOverACompressedCacheEqualsRepeatedPasses) {
    ForwardOptions options{.block_tokens = 8};
    options.keep = [](const CacheAddress&, const arma::fmat& block) -> arma::fmat {
        return arma::round(2.0F * block) / 2.0F;
    };
    LlamaSession session(model_, options);
    session.append(tokens(0, 12));
    std::vector<std::int32_t> text(tokens_.begin(), tokens_.begin() + 12);
    for (int i = 0; i < 20; ++i) {
        arma::frowvec last;
        ForwardOptions again = options;
        again.predicted = [&](std::size_t, const arma::fmat& some) { last = some.tail_rows(1); };
        model_.forward(text, again);
        const auto next = static_cast<std::int32_t>(session.log_probabilities().index_max());
        EXPECT_EQ(next, static_cast<std::int32_t>(last.index_max())) << i;
        text.push_back(next);
        session.append(std::span(&next, 1));
    }
}

TEST_F(LlamaSessions, MemoryIsThatOfWeightsCacheAndABlock) {
    const PassMemory bytes = pass_memory(model_.config(), 1000, 40, 8);
    EXPECT_EQ(bytes.weights, 1000.0);
    EXPECT_EQ(bytes.cache, 40.0 * 3.0 * 2.0 * 2.0 * 8.0 * 4.0);  // tokens, layers, sides, heads, channels, bytes
    EXPECT_EQ(bytes.block, 8.0 * (4.0 * 24.0 + 2.0 * 40.0) * 4.0);
    EXPECT_EQ(bytes.total(), 1000.0 + bytes.cache + bytes.block);
    EXPECT_EQ(pass_memory(model_.config(), 1000, 40, 8, true).block, bytes.block + 8.0 * 50.0 * 4.0);
    EXPECT_EQ(pass_memory(model_.config(), 1000, 4, 8).block, bytes.block / 2.0);  // fewer tokens than a block

    PassMemory more = bytes;
    more.codecs = 5.0;
    more.state = 7.0;
    EXPECT_EQ(more.total(3), 1000.0 + 5.0 + 3.0 * (bytes.cache + bytes.block + 7.0));
    // Keys, values and queries of 3 layers with 2 and 6 heads of 8.
    EXPECT_EQ(dump_memory(model_.config(), 1000, 40).state, 40.0 * 3.0 * (2.0 + 2.0 + 6.0) * 8.0 * 4.0);
}

TEST_F(LlamaSessions, PassesThatDoNotFitAreAnError) {
    PassMemory bytes{.weights = 0.5 * static_cast<double>(allowed_memory())};
    bytes.state = bytes.weights / 3.0;
    require_memory(bytes, 40, 2);
    expect_error(ErrorKind::memory, [&] { require_memory(bytes, 40, 4); },
                 {"out of memory", "4 times the cache of 40 tokens", "use fewer threads"});
    bytes.state *= 4.0;
    expect_error(ErrorKind::memory, [&] { require_memory(bytes, 40); },
                 {"the cache of 40 tokens", "allowed): cut the"});
}

TEST_F(LlamaSessions, RejectsIllegalUse) {
    LlamaSession session(model_, {.block_tokens = 8});
    expect_error(ErrorKind::internal, [&] { (void)session.log_probabilities(); }, {"before the first token"});
    expect_error(ErrorKind::input, [&] { session.append({}); }, {"a sequence of 0 tokens"});
    session.append(tokens(0, 10));
    const std::vector<std::int32_t> strange{1, 50};
    expect_error(ErrorKind::input, [&] { session.append(strange); }, {"token 11 of a sequence is 50"});
    expect_error(ErrorKind::input, [&] { session.append(std::vector<std::int32_t>(55, 1)); },
                 {"a sequence of 65 tokens (expected 1 to 64"});
    EXPECT_EQ(session.tokens(), 10U);  // nothing was appended
    session.append(tokens(10, 30));
    EXPECT_LT(arma::abs(session.log_probabilities() - rows({.block_tokens = 8}, {40}).row(39)).max(), 1e-5F);

    expect_error(ErrorKind::usage, [&] { LlamaSession none(model_, {.block_tokens = 0}); }, {"blocks of 0 tokens"});
    LlamaSession own(model_,
                     {.block_tokens = 8, .keep = [](const auto&, const auto& b) { return b; }, .keep_own = true});
    own.append(tokens(0, 8));
    own.append(tokens(8, 2));
    expect_error(ErrorKind::internal, [&] { own.append(tokens(10, 1)); }, {"within a block that keep_own"});
}

}  // namespace
}  // namespace spiked::sim
