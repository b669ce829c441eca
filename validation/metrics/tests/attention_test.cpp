#include "validation/metrics/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/random/normal.hpp"

namespace spiked::validation {
namespace {

arma::mat gaussian(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat matrix(rows, columns);
    stream::fill_normal(stream::Stream({}, "attention", stream::Role::noise, replicate),
                        {matrix.memptr(), matrix.n_elem});
    return matrix;
}

AttentionHead some_head(bool causal) {
    return {gaussian(11, 6, 0), gaussian(11, 4, 1), {3.0 * gaussian(11, 6, 2), gaussian(11, 6, 3)}, causal};
}

/// One entry of the attention output, by plain loops over the formula.
double output_entry(const arma::mat& queries, const arma::mat& keys, const arma::mat& values, bool causal,
                    arma::uword token, arma::uword channel) {
    double sum = 0.0;
    double norm = 0.0;
    for (arma::uword j = 0; j < keys.n_rows; ++j) {
        if (causal && j > token) continue;
        double product = 0.0;
        for (arma::uword c = 0; c < keys.n_cols; ++c) product += queries(token, c) * keys(j, c);
        const double weight = std::exp(product / std::sqrt(static_cast<double>(keys.n_cols)));
        sum += weight * values(j, channel);
        norm += weight;
    }
    return sum / norm;
}

TEST(AttentionReference, ErrorsAreThoseOfPlainLoops) {
    for (const bool causal : {true, false}) {
        const AttentionHead head = some_head(causal);
        const arma::mat keys = head.keys + 0.2 * gaussian(11, 6, 4);
        const arma::mat values = head.values + 0.3 * gaussian(11, 4, 5);
        const arma::uvec tokens = {0, 4, 10};
        double logits = 0.0;
        double pairs = 0.0;
        double energy = 0.0;
        double keys_only = 0.0;
        double both = 0.0;
        for (const auto& queries : head.queries)
            for (const arma::uword t : tokens) {
                for (arma::uword j = 0; j < 11; ++j) {
                    if (causal && j > t) continue;
                    double change = 0.0;
                    for (arma::uword c = 0; c < 6; ++c) change += queries(t, c) * (keys(j, c) - head.keys(j, c));
                    logits += change * change / 6.0;
                    pairs += 1.0;
                }
                for (arma::uword c = 0; c < 4; ++c) {
                    const double exact = output_entry(queries, head.keys, head.values, causal, t, c);
                    energy += exact * exact;
                    keys_only += std::pow(output_entry(queries, keys, head.values, causal, t, c) - exact, 2);
                    both += std::pow(output_entry(queries, keys, values, causal, t, c) - exact, 2);
                }
            }
        const AttentionErrors found = attention_errors(head, keys, {&head.values, &values}, tokens);
        EXPECT_NEAR(found.logits, std::sqrt(logits / pairs), 1e-13);
        ASSERT_EQ(found.outputs.size(), 2U);
        EXPECT_NEAR(found.outputs[0], std::sqrt(keys_only / energy), 1e-13);
        EXPECT_NEAR(found.outputs[1], std::sqrt(both / energy), 1e-13);
    }
}

/// Attention weights of one query over the keys that it sees, by plain loops.
std::vector<double> plain_weights(const arma::mat& queries, const arma::mat& keys, bool causal, arma::uword token) {
    std::vector<double> weights;
    double sum = 0.0;
    for (arma::uword j = 0; j < keys.n_rows && (!causal || j <= token); ++j) {
        double product = 0.0;
        for (arma::uword c = 0; c < keys.n_cols; ++c) product += queries(token, c) * keys(j, c);
        weights.push_back(std::exp(product / std::sqrt(static_cast<double>(keys.n_cols))));
        sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
    return weights;
}

TEST(AttentionReference, DivergenceAndAgreementAreThoseOfPlainLoops) {
    for (const bool causal : {true, false}) {
        const AttentionHead head = some_head(causal);
        const arma::mat keys = head.keys + 0.5 * gaussian(11, 6, 4);
        const arma::uvec tokens = {0, 4, 9, 10};
        double nats = 0.0;
        double same = 0.0;
        double among = 0.0;
        for (const auto& queries : head.queries)
            for (const arma::uword t : tokens) {
                const auto p = plain_weights(queries, head.keys, causal, t);
                const auto q = plain_weights(queries, keys, causal, t);
                for (std::size_t j = 0; j < p.size(); ++j) nats += p[j] * std::log(p[j] / q[j]) / 8.0;
                // The rank of a token is the number of larger weights.
                const auto rank = [](const std::vector<double>& weights, std::size_t j) {
                    return std::count_if(weights.begin(), weights.end(), [&](double w) { return w > weights[j]; });
                };
                double both = 0.0;
                for (std::size_t j = 0; j < p.size(); ++j) {
                    if (rank(p, j) == 0 && rank(q, j) == 0) same += 1.0 / 8.0;
                    if (rank(p, j) < 8 && rank(q, j) < 8) both += 1.0;
                }
                among += both / static_cast<double>(std::min<std::size_t>(p.size(), 8)) / 8.0;
            }
        const AttentionErrors found = attention_errors(head, keys, {&head.values}, tokens);
        EXPECT_NEAR(found.divergence, nats, 1e-13);
        EXPECT_NEAR(found.top1, same, 1e-13);
        EXPECT_NEAR(found.top8, among, 1e-13);
        EXPECT_LT(found.top1, 1.0);
        EXPECT_LT(found.top8, 1.0);
        const AttentionErrors none = attention_errors(head, head.keys, {&head.values}, tokens);
        EXPECT_EQ(none.divergence, 0.0);
        EXPECT_EQ(none.top1, 1.0);
        EXPECT_EQ(none.top8, 1.0);
    }
}

TEST(Attention, MaskedKeysDoNotCountAndOutputsDoNotDependOnShiftsOfLogits) {
    AttentionHead head = some_head(true);
    arma::mat keys = head.keys;
    keys.tail_rows(6) *= -3.0;
    const arma::uvec early = {0, 2, 4};
    EXPECT_EQ(attention_errors(head, keys, {&head.values}, early).logits, 0.0);
    EXPECT_EQ(attention_errors(head, keys, {&head.values}, early).outputs[0], 0.0);
    EXPECT_GT(attention_errors(head, keys, {&head.values}, {9}).outputs[0], 0.01);
    head.causal = false;
    EXPECT_GT(attention_errors(head, keys, {&head.values}, early).outputs[0], 0.01);
    // Adding the same vector to every key adds the same number to all logits of a query.
    const arma::mat shifted = head.keys.each_row() + arma::rowvec(6, arma::fill::value(0.7));
    EXPECT_GT(attention_errors(head, shifted, {&head.values}, early).logits, 0.1);
    EXPECT_NEAR(attention_errors(head, shifted, {&head.values}, early).outputs[0], 0.0, 1e-13);
}

TEST(AttentionStability, LargeLogitsGiveFiniteErrorsAndZeroOutputsGiveNaN) {
    AttentionHead head = some_head(true);
    for (auto& queries : head.queries) queries *= 1e5;
    const AttentionErrors found = attention_errors(head, head.keys + 1e-3, {&head.values}, {3, 10});
    EXPECT_TRUE(std::isfinite(found.outputs[0]));
    EXPECT_TRUE(std::isfinite(found.divergence));
    head.values.zeros();
    EXPECT_TRUE(std::isnan(attention_errors(head, head.keys, {&head.values}, {3}).outputs[0]));
}

TEST(Attention, QueryTokensAreEvenlySpacedAndIncludeTheLast) {
    const arma::uvec all = query_tokens(7, 5);
    EXPECT_TRUE(arma::all(all == arma::uvec{7, 8, 9, 10, 11}));
    const arma::uvec some = query_tokens(256, 128);
    ASSERT_EQ(some.n_elem, 32U);
    EXPECT_EQ(some(0), 259U);
    EXPECT_EQ(some(31), 383U);
}

}  // namespace
}  // namespace spiked::validation
