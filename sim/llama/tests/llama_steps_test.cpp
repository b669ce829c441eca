#include "sim/llama/llama_steps.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "sim/llama/float_exp.hpp"

namespace spiked::sim {
namespace {

arma::fmat random_matrix(arma::uword rows, arma::uword columns, unsigned seed) {
    arma::fmat result(rows, columns);
    std::uint32_t state = seed * 2654435761U + 1U;
    for (float& x : result) {
        state = state * 1664525U + 1013904223U;
        x = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
    }
    return result;
}

/// Every 997th float against the exponential of the C library in double.
TEST(FloatExpReference, AgreesWithDoubleOverTheWholeRange) {
    double largest_relative = 0.0;
    double largest_absolute = 0.0;
    for (std::uint64_t bits = 0; bits <= std::numeric_limits<std::uint32_t>::max(); bits += 997) {
        const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (std::isnan(x)) continue;
        const double expected = std::exp(static_cast<double>(x));
        const double found = static_cast<double>(float_exp(x));
        if (expected > static_cast<double>(std::numeric_limits<float>::max()))
            ASSERT_TRUE(std::isinf(found)) << x;
        else if (expected >= static_cast<double>(std::numeric_limits<float>::min()))
            largest_relative = std::max(largest_relative, std::abs(found / expected - 1.0));
        else
            largest_absolute = std::max(largest_absolute, std::abs(found - expected));
    }
    EXPECT_LT(largest_relative, 1e-7);
    EXPECT_GT(largest_relative, 1e-8) << "nothing was compared";
    EXPECT_LT(largest_absolute, 2e-45);
}

TEST(FloatExp, SpecialValues) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(float_exp(0.0F), 1.0F);
    EXPECT_EQ(float_exp(-0.0F), 1.0F);
    EXPECT_EQ(float_exp(-infinity), 0.0F);
    EXPECT_EQ(float_exp(infinity), infinity);
    EXPECT_TRUE(std::isnan(float_exp(std::numeric_limits<float>::quiet_NaN())));
    EXPECT_TRUE(std::isnan(float_exp(-std::numeric_limits<float>::quiet_NaN())));
}

/// The loops of the library run in the widest registers of the processor, those of this test need not.
TEST(LlamaSteps, RegistersOfEveryWidthGiveTheSameBits) {
    const arma::fmat gate = 20.0F * random_matrix(13, 29, 1);
    const arma::fmat up = random_matrix(13, 29, 2);
    const arma::fmat found = silu_product(gate, up);
    for (arma::uword i = 0; i < gate.n_elem; ++i)
        ASSERT_EQ(found(i), gate(i) / (1.0F + float_exp(-gate(i))) * up(i)) << i;
}

TEST(LlamaStepsReference, SiluOfLargeNumbers) {
    const arma::fmat gate = {{-200.0F, -30.0F, -1.0F, 0.0F, 1.0F, 30.0F, 200.0F}};
    const arma::fmat found = silu_product(gate, arma::fmat(1, 7, arma::fill::value(2.0F)));
    for (arma::uword i = 0; i < gate.n_elem; ++i) {
        const double x = static_cast<double>(gate(i));
        EXPECT_NEAR(static_cast<double>(found(i)), 2.0 * x / (1.0 + std::exp(-x)), 1e-6 * (1.0 + std::abs(x))) << x;
    }
}

/// Attention of one head by its definition, in double: the weights, queries x cached rows.
arma::mat plain_weights(const arma::fmat& queries, const arma::fmat& keys, const std::vector<arma::uword>& oldest) {
    arma::mat weights(queries.n_rows, keys.n_rows, arma::fill::zeros);
    for (arma::uword t = 0; t < queries.n_rows; ++t) {
        double sum = 0.0;
        for (arma::uword j = oldest.empty() ? 0 : oldest[t]; j <= keys.n_rows - queries.n_rows + t; ++j) {
            double score = 0.0;
            for (arma::uword i = 0; i < keys.n_cols; ++i)
                score += static_cast<double>(queries(t, i)) * static_cast<double>(keys(j, i));
            weights(t, j) = std::exp(score / std::sqrt(static_cast<double>(keys.n_cols)));
            sum += weights(t, j);
        }
        weights.row(t) /= sum;
    }
    return weights;
}

struct AttentionShape {
    arma::uword tokens, cached, heads, dim, window;
};

TEST(LlamaStepsReference, AttentionAgreesWithItsDefinition) {
    // Blocks that are cut into parts and not, one query, one cached row, and windows.
    for (const auto& s : {AttentionShape{100, 130, 3, 8, 0}, AttentionShape{128, 128, 12, 4, 0},
                          AttentionShape{1, 40, 2, 6, 0}, AttentionShape{1, 1, 1, 2, 0}, AttentionShape{5, 5, 1, 16, 0},
                          AttentionShape{100, 230, 2, 8, 20}, AttentionShape{200, 201, 1, 4, 1}}) {
        const arma::fmat queries = 3.0F * random_matrix(s.tokens, s.heads * s.dim, 3);
        const arma::fmat keys = 3.0F * random_matrix(s.cached, s.dim, 4);
        const arma::fmat values = random_matrix(s.cached, s.dim, 5);
        std::vector<arma::uword> oldest;
        for (arma::uword t = 0; t < s.tokens && s.window > 0; ++t) {
            const arma::uword end = s.cached - s.tokens + t + 1;
            oldest.push_back(end - std::min(end, s.window));
        }
        std::vector<arma::fmat> weights;
        const arma::fmat keys_by_row = keys.t();
        const arma::fmat values_by_row = values.t();
        const arma::fmat found = attend(queries, keys_by_row, values_by_row, oldest, &weights);
        const std::string what = std::to_string(s.tokens) + " of " + std::to_string(s.cached);
        EXPECT_TRUE(arma::approx_equal(found, attend(queries, keys_by_row, values_by_row, oldest), "absdiff", 0.0))
            << what;
        ASSERT_EQ(weights.size(), s.heads);
        for (arma::uword h = 0; h < s.heads; ++h) {
            const arma::fmat own = queries.cols(h * s.dim, (h + 1) * s.dim - 1);
            const arma::mat expected = plain_weights(own, keys, oldest);
            const arma::mat mean = expected * arma::conv_to<arma::mat>::from(values);
            const auto in_double = [](const arma::fmat& x) { return arma::conv_to<arma::mat>::from(x); };
            EXPECT_TRUE(arma::approx_equal(in_double(weights[h]), expected, "absdiff", 3e-6)) << what;
            EXPECT_TRUE(
                arma::approx_equal(in_double(found.cols(h * s.dim, (h + 1) * s.dim - 1)), mean, "absdiff", 3e-6))
                << what;
            if (s.window == 0) {
                EXPECT_TRUE(arma::approx_equal(in_double(attention_weights(own, keys)), expected, "absdiff", 3e-6))
                    << what;
            }
        }
    }
}

TEST(LlamaStepsReference, ProbabilitiesOfSingleTokensAgreeWithTheirDefinition) {
    // More tokens than are computed at a time, and a last part that is not full.
    constexpr arma::uword inputs = 12;
    constexpr arma::uword vocabulary = 2500;
    const arma::fmat weights = 4.0F * random_matrix(inputs, vocabulary, 6);
    const std::shared_ptr<std::byte[]> bytes(new std::byte[weights.n_elem * sizeof(float)]);
    std::memcpy(bytes.get(), weights.memptr(), weights.n_elem * sizeof(float));
    const WeightMatrix head(bytes, DType::f32, inputs, vocabulary);
    const arma::fmat states = 3.0F * random_matrix(5, inputs, 7);
    const std::vector<std::int32_t> tokens = {0, 1023, 1024, 2499, 700};
    const arma::vec found = log_probabilities_of(states, head, tokens);
    arma::fmat all = head.product(states);
    to_log_probabilities(all);
    for (arma::uword t = 0; t < states.n_rows; ++t) {
        std::vector<double> logits;
        double largest = -std::numeric_limits<double>::infinity();
        for (arma::uword v = 0; v < vocabulary; ++v) {
            double sum = 0.0;
            for (arma::uword i = 0; i < inputs; ++i)
                sum += static_cast<double>(states(t, i)) * static_cast<double>(weights(i, v));
            logits.push_back(sum);
            largest = std::max(largest, sum);
        }
        double sum = 0.0;
        for (const double logit : logits) sum += std::exp(logit - largest);
        const auto token = static_cast<arma::uword>(tokens[t]);
        const double expected = logits[token] - largest - std::log(sum);
        EXPECT_NEAR(found(t), expected, 2e-5) << t;
        EXPECT_NEAR(static_cast<double>(all(t, token)), expected, 3e-5) << t;
    }
}

}  // namespace
}  // namespace spiked::sim
