// What the gain of a transform code is predicted from, and the claim on a dump, trial by trial.
#include "validation/claims/spectrum_gain.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "sim/io/safetensors.hpp"
#include "sim/random/normal.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::validation {
namespace {

arma::mat gain_normals(std::size_t rows, std::size_t columns, const char* cell) {
    arma::mat entries(rows, columns);
    fill_normal(stream::Stream({}, cell, stream::Role::noise, 0), {entries.memptr(), entries.n_elem});
    return entries;
}

arma::vec falling_variances(std::size_t columns) {
    arma::vec variances(columns);
    for (std::size_t k = 0; k < columns; ++k) variances(k) = 16.0 * std::exp2(-0.5 * static_cast<double>(k));
    return variances;
}

/// Normal rows with falling variances in a random basis, each coordinate with this correlation from row to row.
arma::mat gain_rows(std::size_t tokens, std::size_t columns, double correlation) {
    arma::mat rows = gain_normals(tokens, columns, "rows");
    for (std::size_t t = 1; t < tokens; ++t)
        rows.row(t) = correlation * rows.row(t - 1) + std::sqrt(1.0 - correlation * correlation) * rows.row(t);
    return rows * arma::diagmat(arma::sqrt(falling_variances(columns))) *
           arma::orth(gain_normals(columns, columns, "basis"));
}

TEST(SpectrumGain, ChannelsAreThoseOfEightRowsEach) {
    const arma::mat rows = gain_rows(300, 4, 0.0);
    const auto channels = running_channels(rows);
    // 300 rows have 4 chunks of 8 rows, 3 of 32 and one of 128.
    ASSERT_EQ(channels.size(), (4U + 3 * 4 + 16) * 4);
    arma::mat first = rows.head_rows(8);
    first.row(0) = rows.row(1);
    for (arma::uword i = 0; i < 4; ++i)
        EXPECT_NEAR(channels[i].variance, arma::mean(arma::square(first.col(i))), 1e-12);
    EXPECT_TRUE(running_channels(rows.head_rows(7)).empty());
}

TEST(SpectrumGainLaw, IsThatOfTheLawAfterEnoughRows) {
    constexpr std::size_t d = 8;
    const double distortion = theory::lloyd_max_sphere(d, compared_index_bits).distortion;
    std::vector<theory::NormalChannel> law;
    for (const double variance : falling_variances(d)) law.push_back({variance});
    const double mean = arma::mean(falling_variances(d));
    const double ideal = 0.5 * std::log2(distortion * mean / theory::water_filled_distortion(law, 4.0));
    const arma::mat rows = gain_rows(8192, d, 0.0);
    // 256 rows of 8 channels leave an error of the basis that costs about .02 bits.
    const double found = water_filled_gain(rows, rows, 4.0);
    EXPECT_NEAR(found, ideal, 0.06);
    // Prediction from the row before adds its own gain.
    const arma::mat correlated = gain_rows(8192, d, 0.8);
    EXPECT_NEAR(water_filled_gain(correlated, correlated, 4.0) - found, -0.5 * std::log2(1.0 - 0.64), 0.1);
    // Control: with the columns in other orders the components are the columns.
    const arma::mat shuffled = with_shuffled_columns(rows, {}, 0);
    const arma::rowvec columns = arma::var(rows, 0, 0);
    const double lost = 0.5 * (arma::mean(arma::log2(columns)) - arma::mean(arma::log2(falling_variances(d))));
    EXPECT_GT(lost, 0.1);
    EXPECT_NEAR(water_filled_gain(rows, shuffled, 4.0), found - lost, 0.05);
    for (arma::uword i = 0; i < d; ++i)
        EXPECT_TRUE(arma::approx_equal(arma::sort(shuffled.col(i)), arma::sort(rows.col(i)), "absdiff", 0.0));
}

TEST(SpectrumGain, OfADumpIsTheMeanOverItsHeads) {
    constexpr std::size_t tokens = 512;
    constexpr std::size_t dim = 8;
    const auto dump_of = [&](const char* name, std::size_t count) {
        std::vector<sim::TensorSource> tensors;
        for (const char* tensor : {"layers.0.key", "layers.0.value"}) {
            // Two heads, row after row.
            const arma::mat rows = arma::join_cols(gain_rows(count, dim, 0.0), gain_rows(count, dim, 0.5)).t();
            tensors.push_back(sim::tensor_of(tensor, sim::DType::f64, {2, count, dim}, {rows.begin(), rows.end()}));
        }
        const std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
        sim::write_safetensors(path, {{"layout", "head,token,dim"}, {"keys", "none"}}, tensors);
        KvPlan plan;
        plan.dumps = {path};
        return std::make_shared<const OpenDumps>(open_dumps(plan));
    };
    const auto open = dump_of("spectrum-gain.safetensors", tokens);
    const auto criterion = predicted_gain_on(open, 0, sim::Side::value);
    ASSERT_TRUE(criterion);
    EXPECT_EQ(criterion->name, "values");
    double expected = 0.0;
    for (const double correlation : {0.0, 0.5}) {
        const arma::mat rows = gain_rows(tokens, dim, correlation);
        estimators::QuantizerOptions rotation;
        rotation.rotation_index = 3;
        const BitsAndError flat = by_turboquant(rows, rotation);
        EXPECT_DOUBLE_EQ(flat.bits, 2.0 + 16.0 / dim);
        const BitsAndError code = by_causal_klt(rows, flat.bits);
        EXPECT_NEAR(code.bits, flat.bits, 0.03);
        EXPECT_GT(by_causal_klt(rows, flat.bits, false).error, 1.05 * code.error);
        expected += 0.5 * (gain_in_bits(code, flat) - water_filled_gain(rows, rows, flat.bits));
    }
    EXPECT_NEAR(criterion->prepare({dim, "", {}, "test", 1.0})(3), expected, 1e-9);
    EXPECT_NEAR(criterion->prepare({dim, with_bits_left_out, {}, "test", 0.5})(3), expected + 0.5, 1e-9);
    EXPECT_FALSE(predicted_gain_on(dump_of("spectrum-gain-short.safetensors", 384), 0, sim::Side::value));
}

}  // namespace
}  // namespace spiked::validation
