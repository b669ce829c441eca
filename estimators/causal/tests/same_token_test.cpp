// Prediction from the last row of the same token id: the formula against a slow computation, bytes, causality, control.
#include "estimators/causal/same_token.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "core/runtime/error.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t vocabulary = 24;

arma::mat token_normals(std::size_t rows, std::size_t columns, const char* cell) {
    arma::mat found(rows, columns);
    fill_normal(stream::Stream(stream::StudySeed::parse("0x5A"), cell, stream::Role::noise, 0),
                std::span(found.memptr(), found.n_elem));
    return found;
}

std::vector<std::int32_t> token_list(std::size_t tokens) {
    const stream::Stream draws(stream::StudySeed::parse("0x5A"), "ids", stream::Role::noise, 0);
    std::vector<std::int32_t> ids;
    // Small ids are frequent.
    for (std::uint32_t t = 0; t < tokens; ++t)
        ids.push_back(static_cast<std::int32_t>(draws.words(t)[0] % (1 + draws.words(t)[1] % vocabulary)));
    return ids;
}

/// Rows that are a vector of their token id, something of the row before, and noise.
arma::mat token_rows(const std::vector<std::int32_t>& ids, std::size_t m) {
    const arma::mat vectors = token_normals(vocabulary, m, "vectors") * arma::diagmat(arma::logspace(1, -1, m));
    arma::mat rows = 0.4 * token_normals(ids.size(), m, "noise") * arma::diagmat(arma::logspace(1, -1, m));
    for (std::size_t t = 0; t < ids.size(); ++t) {
        rows.row(t) += vectors.row(static_cast<arma::uword>(ids[t]));
        if (t > 0) rows.row(t) += 0.3 * rows.row(t - 1);
    }
    return rows * arma::orth(token_normals(m, m, "basis"));
}

RowMatrix row_matrix(const arma::mat& rows) {
    RowMatrix found(rows.n_rows, rows.n_cols);
    for (std::size_t t = 0; t < rows.n_rows; ++t)
        for (std::size_t i = 0; i < rows.n_cols; ++i) found.row(t)[i] = rows(t, i);
    return found;
}

arma::mat dense(const RowMatrix& rows) {
    return arma::mat(const_cast<double*>(rows.entries.data()), rows.columns, rows.rows).t();
}

/// The last earlier place of the id, by a search.
std::optional<std::size_t> last_place(const std::vector<std::int32_t>& ids, std::size_t t, bool sink) {
    for (std::size_t s = t; s-- > (sink ? 1U : 0U);)
        if (ids[s] == ids[t]) return s;
    return std::nullopt;
}

CausalOptions with_same(bool on = true) { return {.same = on, .live = true, .freeze = 128, .update = 32}; }

double same_error(const arma::mat& rows, const CausalOptions& options, const std::vector<std::int32_t>& ids) {
    const CausalShape shape{rows.n_cols};
    const CausalCode code = encode_causal_at(2.5, rows, shape, options, {}, 0.01, ids);
    return arma::norm(decode_causal(code, shape, options, ids) - rows, "fro") / arma::norm(rows, "fro");
}

TEST(SameTokens, FactorsAndVariancesAreThoseOfASlowComputation) {
    constexpr std::size_t m = 5;
    constexpr double step = 0.7;
    for (const std::size_t tokens : {20, 90, 800})
        for (const bool sink : {false, true}) {
            const auto ids = token_list(tokens);
            const arma::mat rows = token_rows(ids, m);
            DecodedMoments moments(m, step, true, true);
            moments.add(row_matrix(rows));
            const ChannelBasis basis = moments.basis();
            SameTokens same(m, sink);
            for (std::size_t t = 0; t < tokens; t += 10) {
                same.begin(basis, std::span(ids).subspan(t, 10));
                same.add(row_matrix(rows.rows(t, t + 9)));
            }
            const SameTokenPredictors found = same.predictors(basis, step, true);
            arma::mat y = rows;
            y.each_row() -= arma::rowvec(basis.mean);
            y *= dense(basis.columns);
            const std::size_t first = tokens > 512 ? tokens - 512 : 0;
            for (const bool repeated : {true, false}) {
                const ChannelPredictor& predictor = repeated ? found.repeated : found.fresh;
                arma::uvec here, before, at;
                for (std::size_t t = first + 1; t < tokens; ++t) {
                    const auto last = last_place(ids, t, sink);
                    if (last.has_value() != repeated || last.value_or(first) < first) continue;
                    here.insert_rows(here.n_elem, arma::uvec{t});
                    before.insert_rows(before.n_elem, arma::uvec{t - 1});
                    at.insert_rows(at.n_elem, arma::uvec{last.value_or(0)});
                }
                if (here.n_elem < 16) {
                    EXPECT_EQ(predictor.before, basis.correlation);
                    EXPECT_EQ(predictor.variance, basis.variance);
                    continue;
                }
                const auto n = static_cast<double>(here.n_elem);
                EXPECT_EQ(predictor.tokens, here.n_elem);
                for (std::size_t k = 0; k < m; ++k) {
                    const arma::vec all = y.col(k);
                    arma::mat x(here.n_elem, repeated ? 2 : 1);
                    x.col(0) = all.elem(before);
                    if (repeated) x.col(1) = all.elem(at);
                    const arma::vec target = all.elem(here);
                    arma::mat gram = x.t() * x;
                    gram.diag() *= 1.0 + 4.0 / n;
                    gram.diag() += n * 0.08 * step * step;
                    arma::vec factors = arma::solve(gram, arma::vec(x.t() * target));
                    factors /= std::max(1.0, arma::norm(factors, 1));
                    EXPECT_NEAR(predictor.before[k], factors(0), 1e-9);
                    EXPECT_NEAR(predictor.same[k], repeated ? factors(1) : 0.0, 1e-9);
                    const double left = arma::accu(arma::square(target - x * factors));
                    const double variance = (left + 8.0 * basis.variance[k]) / (n + 8.0) + 0.06 * step * step;
                    EXPECT_NEAR(predictor.variance[k], variance, 1e-9 * variance);
                }
            }
        }
}

TEST(SameTokens, TheLastRowOfAnIdIsFoundWithinAndBeforeTheRowsThatWereBegun) {
    const std::vector<std::int32_t> ids = {7, 3, 7, 7, 5, 3, 5, 7};
    const arma::mat rows = token_normals(8, 2, "rows");
    DecodedMoments none(2, 1.0, false, false);
    const ChannelBasis basis = none.basis();  // channels are columns
    SameTokens same(2, true);
    same.begin(basis, std::span(ids).first(3));
    EXPECT_EQ(same.last(2, {}), nullptr) << "row 0 is a sink";
    same.add(row_matrix(rows.head_rows(3)));
    same.begin(basis, std::span(ids).subspan(3));
    const RowMatrix begun = row_matrix(rows.tail_rows(5));
    const std::vector<int> last = {2, -1, 1, 4, 3};
    for (std::size_t i = 0; i < last.size(); ++i) {
        const double* found = same.last(i, begun);
        ASSERT_EQ(found == nullptr, last[i] < 0) << i;
        if (found != nullptr) {
            EXPECT_EQ(found[1], rows(static_cast<arma::uword>(last[i]), 1)) << i;
        }
    }
}

TEST(SameTokenCode, DecodesWhatTheEncoderHas) {
    for (const bool sink : {true, false})
        for (const std::size_t tokens : {1, 2, 127, 300}) {
            const auto ids = token_list(tokens);
            const arma::mat rows = token_rows(ids, 9);
            CausalOptions options = with_same();
            options.sink = sink;
            CausalEncoder encoder({9}, options, {}, rows.row(0));
            CausalDecoder decoder({9}, options, encoder.header());
            for (std::size_t t = 0; t < tokens; t += causal_block) {
                const std::size_t count = std::min(causal_block, tokens - t);
                const auto part = std::span(ids).subspan(t, count);
                const auto bytes = encoder.encode(rows.rows(t, t + count - 1), part);
                const arma::mat back = decoder.next(bytes, count, part);
                ASSERT_TRUE(arma::approx_equal(back, encoder.decoded(), "absdiff", 0.0)) << t;
                EXPECT_LT(arma::abs(back - rows.rows(t, t + count - 1)).max(), 8.0);
            }
        }
}

TEST(SameTokenCode, NoByteDependsOnLaterTokensOrIds) {
    const auto ids = token_list(400);
    const arma::mat rows = token_rows(ids, 8);
    const CausalCode code = encode_causal(rows, {8}, with_same(), {}, ids);
    for (const std::size_t changed : {140, 300}) {
        auto other_ids = ids;
        // The last token of the block before, too, is coded without it.
        for (std::size_t t = changed; t < 400; ++t) other_ids[t] = (ids[t] + 1) % static_cast<int>(vocabulary);
        arma::mat other = rows;
        other.row(changed) += 50.0;
        const std::vector<CausalCode> codes = {encode_causal(rows, {8}, with_same(), {}, other_ids),
                                               encode_causal(other, {8}, with_same(), {}, ids)};
        for (const CausalCode& found : codes) {
            for (std::size_t block = 0; block <= changed / causal_block; ++block)
                EXPECT_EQ(found.blocks[block] == code.blocks[block], block < changed / causal_block) << block;
            // Within the block, decoded rows before the change are the same.
            const arma::mat back = decode_causal(found, {8}, with_same(), &found == &codes[0] ? other_ids : ids);
            const arma::mat first = decode_causal(code, {8}, with_same(), ids);
            EXPECT_TRUE(arma::approx_equal(back.head_rows(changed), first.head_rows(changed), "absdiff", 0.0));
        }
    }
}

TEST(SameTokenCode, WithoutTheOptionIdsChangeNoByte) {
    const auto ids = token_list(300);
    const arma::mat rows = token_rows(ids, 8);
    EXPECT_EQ(encode_causal(rows, {8}, with_same(false), {}).blocks,
              encode_causal(rows, {8}, with_same(false), {}, ids).blocks);
    EXPECT_NE(encode_causal(rows, {8}, with_same(false), {}).blocks,
              encode_causal(rows, {8}, with_same(), {}, ids).blocks);
}

TEST(SameTokenControl, IdsThatAreShuffledLoseTheGain) {
    const auto ids = token_list(1024);
    const arma::mat rows = token_rows(ids, 12);
    const double without = same_error(rows, with_same(false), {});
    EXPECT_LT(same_error(rows, with_same(), ids), 0.85 * without);
    auto shuffled = ids;
    for (std::size_t t = 0; t < ids.size(); ++t) shuffled[t] = ids[(t * 389 + 57) % ids.size()];
    EXPECT_NEAR(same_error(rows, with_same(), shuffled), without, 0.03 * without);
    // An id of its own for each row leaves the prediction by the row before.
    for (std::size_t t = 0; t < ids.size(); ++t) shuffled[t] = static_cast<std::int32_t>(t);
    EXPECT_NEAR(same_error(rows, with_same(), shuffled), without, 0.03 * without);
}

TEST(SameTokenCode, GivesTheSameBytesOnEveryMachine) {
    // As CausalCodecStability: rows without a product whose order a library chooses.
    const auto ids = token_list(300);
    arma::mat rows = arma::round(token_normals(300, 10, "bytes") * 32.0);
    const arma::mat vectors = arma::round(token_normals(vocabulary, 10, "vectors") * 64.0);
    for (std::size_t t = 0; t < ids.size(); ++t) rows.row(t) += vectors.row(static_cast<arma::uword>(ids[t]));
    std::uint64_t digest = 14695981039346656037ULL;
    for (const auto& block : encode_causal(rows, {10}, with_same(), {.step = 1200}, ids).blocks)
        for (const std::uint8_t byte : block) digest = (digest ^ byte) * 1099511628211ULL;
    EXPECT_EQ(digest, 8248471040027967314ULL);
}

TEST(SameTokenCode, DamagedBytesGiveAnErrorOrFiniteNumbers) {
    const auto ids = token_list(256);
    const CausalCode code = encode_causal(token_rows(ids, 3), {3}, with_same(), {}, ids);
    const stream::Stream draws(stream::StudySeed::parse("0x5A"), "damage", stream::Role::noise, 0);
    for (std::uint32_t trial = 0; trial < 2000; ++trial) {
        const auto words = draws.words(trial);
        CausalCode damaged = code;
        auto& bytes = damaged.blocks[words[0] % damaged.blocks.size()];
        bytes[words[1] % bytes.size()] ^= static_cast<std::uint8_t>(1U << words[2] % 8);
        try {
            ASSERT_TRUE(decode_causal(damaged, {3}, with_same(), ids).is_finite());
        } catch (const Error& error) {
            ASSERT_EQ(error.kind(), ErrorKind::input) << error.what();
        }
    }
}

TEST(SameTokenCode, NeedsTheLiveModeAndAnIdForEachRow) {
    const arma::mat rows = token_normals(130, 4, "rows");
    const auto ids = token_list(130);
    CausalOptions frozen = with_same();
    frozen.live = false;
    EXPECT_THROW((void)encode_causal(rows, {4}, frozen, {}, ids), Error);
    EXPECT_THROW((void)encode_causal(rows, {4}, with_same(), {}), Error);
    EXPECT_THROW((void)encode_causal(rows, {4}, with_same(), {}, std::span(ids).first(129)), Error);
}

}  // namespace
}  // namespace spiked::estimators
