#include "sim/kv/rope.hpp"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <vector>

#include "core/files/tests/scratch.hpp"
#include "sim/random/normal.hpp"

namespace spiked::sim {
namespace {

constexpr RopeStyle styles[] = {RopeStyle::rotate_half, RopeStyle::interleaved};

arma::mat random_block(std::size_t rows, std::size_t columns, std::uint64_t replicate = 0) {
    arma::mat block(rows, columns);
    const auto seed = stream::StudySeed::parse("0x5eed0000000000000000000000000007");
    stream::fill_normal(stream::Stream(seed, "rope", stream::Role::noise, replicate), {block.memptr(), block.n_elem});
    return block;
}

/// Positions that are neither sorted nor integers.
std::vector<double> scattered(std::size_t count) {
    std::vector<double> positions(count);
    for (std::size_t t = 0; t < count; ++t) positions[t] = 17.5 * std::fmod(static_cast<double>(t) * 7.0, 11.0) - 20.0;
    return positions;
}

/// A second implementation: each pair is a complex number that is multiplied by e^(i angle). Frequencies are computed
/// by repeated multiplication instead of powers, and pairs are listed explicitly.
arma::mat complex_rope(const arma::mat& block, const Rope& rope, const std::vector<double>& positions) {
    const std::size_t dim = block.n_cols;
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    if (rope.style == RopeStyle::rotate_half)
        for (std::size_t i = 0, j = dim / 2; j < dim; ++i, ++j) pairs.emplace_back(i, j);
    else
        for (std::size_t i = 0; i < dim; i += 2) pairs.emplace_back(i, i + 1);
    const long double step = std::exp(-2.0L * std::log(static_cast<long double>(rope.base)) / dim);
    arma::mat result = block;
    for (std::size_t t = 0; t < block.n_rows; ++t) {
        long double frequency = 1.0L;
        for (const auto& [first, second] : pairs) {
            const auto rotation = std::polar(1.0L, static_cast<long double>(positions[t]) * frequency);
            const auto z = std::complex<long double>(block(t, first), block(t, second)) * rotation;
            result(t, first) = static_cast<double>(z.real());
            result(t, second) = static_cast<double>(z.imag());
            frequency *= step;
        }
    }
    return result;
}

/// The reference uses wavelengths in long double, as in Hugging Face's code, with the parameters of Llama 3.1 and the
/// factor of Llama 3.2.
TEST(RopeScaling, SlowsLongWavelengths) {
    const std::size_t dim = 128;
    for (const double factor : {8.0, 32.0}) {
        const Rope rope{500000.0, RopeStyle::rotate_half, RopeScaling{factor, 1.0, 4.0, 8192.0}};
        arma::mat ones(1, dim, arma::fill::zeros);
        ones.head_cols(dim / 2).ones();
        const arma::mat rotated = apply_rope(ones, rope, 1.0);
        std::size_t kept = 0, between = 0, slowed = 0;
        for (std::size_t pair = 0; pair < dim / 2; ++pair) {
            const long double plain = std::exp(-2.0L * static_cast<long double>(pair) / dim * std::log(500000.0L));
            const long double length = 2.0L * std::acos(-1.0L) / plain;
            long double expected = plain;
            if (length > 8192.0L) {
                expected = plain / static_cast<long double>(factor);
                ++slowed;
            } else if (length >= 8192.0L / 4.0L) {
                const long double smooth = (8192.0L / length - 1.0L) / 3.0L;
                expected = (1.0L - smooth) * plain / static_cast<long double>(factor) + smooth * plain;
                ++between;
            } else {
                ++kept;
            }
            const double found = std::atan2(rotated(0, pair + dim / 2), rotated(0, pair));
            EXPECT_NEAR(found / static_cast<double>(expected), 1.0, 1e-12) << pair;
        }
        EXPECT_GT(kept, 0);
        EXPECT_GT(between, 0);
        EXPECT_GT(slowed, 0);
    }
}

RopeScaling scaling_from(const std::string& text) {
    const auto scaling = read_rope_scaling(Json::parse(text, "test"), "test");
    EXPECT_TRUE(scaling.has_value()) << text;
    return scaling.value_or(RopeScaling{});
}

struct ExpectedFrequency {
    std::size_t pair;
    double value;
};
void expect_frequencies(const RopeScaling& scaling, double base, const std::vector<ExpectedFrequency>& expected) {
    for (const auto& [pair, value] : expected)
        EXPECT_NEAR(scaled_frequency(scaling, base, pair, 128) / value, 1.0, 1e-13) << pair;
}

// The expected numbers here and below were computed in NumPy by the formulas of transformers 5.24.0.
TEST(RopeScalingReference, Llama31HasTheFrequenciesOfNumPy) {
    const RopeScaling scaling = scaling_from(R"({"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192, "rope_type": "llama3"})");
    EXPECT_EQ(scaling, RopeScaling{});
    expect_frequencies(scaling, 500000.0,
                       {{0, 1.0},
                        {1, 0.8146172338565447},
                        {28, 0.003211445994752591},
                        {29, 0.002166570763503359},
                        {32, 0.0005248461609929547},
                        {34, 0.0001785078127679964},
                        {35, 9.556212353964683e-05},
                        {63, 3.068925988914511e-07}});
}

TEST(RopeScalingReference, YarnHasTheFrequenciesOfNumPy) {
    // Qwen 2.5 with its recommended factor for long texts; `type` is the older name of `rope_type`.
    RopeScaling scaling = scaling_from(R"({"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"})");
    EXPECT_NEAR(scaling.attention_factor, 1.138629436111989, 1e-15);
    expect_frequencies(scaling, 1e6,
                       {{0, 1.0},
                        {20, 0.01333521432163324},
                        {24, 0.005375321490790102},
                        {30, 0.001064360981247002},
                        {36, 0.0001798411558739542},
                        {40, 4.445698525097307e-05},
                        {63, 3.102344401879299e-07}});
    scaling = scaling_from(R"({"factor": 16, "original_max_position_embeddings": 4096, "rope_type": "yarn",
                               "truncate": false, "attention_factor": 1.25})");
    EXPECT_EQ(scaling.attention_factor, 1.25);
    expect_frequencies(scaling, 10000.0,
                       {{20, 0.056234132519034905},
                        {24, 0.027861316864565167},
                        {36, 0.002327564826746066},
                        {45, 9.785687467235491e-05},
                        {50, 4.686838808327849e-05}});
    scaling = scaling_from(R"({"factor": 40, "original_max_position_embeddings": 4096, "rope_type": "yarn",
                               "mscale": 0.707, "mscale_all_dim": 0.5})");
    EXPECT_NEAR(scaling.attention_factor, 1.064468903941252, 1e-15);
}

TEST(RopeScalingReference, LinearDividesPositions) {
    const RopeScaling scaling = scaling_from(R"({"rope_type": "linear", "factor": 2.5})");
    const arma::mat block = random_block(20, 16);
    const auto positions = scattered(20);
    std::vector<double> shorter = positions;
    for (double& position : shorter) position /= 2.5;
    EXPECT_LT(arma::abs(apply_rope(block, {10000.0, RopeStyle::rotate_half, scaling}, positions) -
                        apply_rope(block, {10000.0, RopeStyle::rotate_half}, shorter))
                  .max(),
              1e-13);
}

TEST(RopeScalingIdentity, UndoingDividesByTheAttentionFactorOfYarn) {
    const RopeScaling scaling =
        scaling_from(R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})");
    const Rope rope{10000.0, RopeStyle::interleaved, scaling};
    const arma::mat block = random_block(30, 64);
    const auto positions = scattered(30);
    const arma::mat rotated = apply_rope(block, rope, positions);
    for (std::size_t t = 0; t < block.n_rows; ++t)
        EXPECT_NEAR(arma::norm(rotated.row(t)) / arma::norm(block.row(t)), 1.138629436111989, 1e-14);
    EXPECT_LT(arma::abs(undo_rope(rotated, rope, positions) - block).max(), 1e-14);
}

TEST(RopeScaling, IsReadBackFromItsJson) {
    for (const char* text :
         {R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.5, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 4096})",
          R"({"rope_type": "linear", "factor": 2.0})",
          R"({"rope_type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "truncate": false,
              "beta_fast": 16.0, "beta_slow": 2.0, "mscale": 0.707, "mscale_all_dim": 0.5})"}) {
        const RopeScaling scaling = scaling_from(text);
        EXPECT_EQ(read_rope_scaling(rope_scaling_json(scaling), "test"), scaling) << text;
    }
    for (const char* none : {"null", "{}", R"({"rope_type": "default"})", R"({"rope_theta": 10000.0})"})
        EXPECT_FALSE(read_rope_scaling(Json::parse(none, "test"), "test").has_value()) << none;
}

TEST(RopeScaling, OthersAreRejectedWithTheReason) {
    const auto rejected = [](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::input, [&] { (void)read_rope_scaling(Json::parse(text, "test"), "a.json: scaling"); }, parts);
    };
    rejected(R"({"type": "dynamic", "factor": 2.0})",
             {"a.json: scaling has rope_type \"dynamic\" (its frequencies depend on the length of the sequence",
              "only default, llama3, linear, yarn are supported"});
    rejected(R"({"rope_type": "longrope", "long_factor": [1.0], "short_factor": [1.0]})",
             {"rope_type \"longrope\" (it has a factor for each pair"});
    rejected(R"({"rope_type": "mrope", "mrope_section": [16, 24, 24]})", {"positions have three coordinates"});
    rejected(R"({"mrope_section": [16, 24, 24], "rope_type": "default"})", {"mrope_section", "three coordinates"});
    rejected(
        R"({"full_attention": {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {"rope_type": "default"}})",
        {"the object \"full_attention\"", "layers of one kind"});
    rejected(R"({"rope_type": "yarm"})", {"the unknown rope_type \"yarm\""});
    rejected(R"({"rope_type": 3})", {"rope_type is not a text"});
    rejected(R"({"factor": 2.0})", {"rope_type is missing"});
    rejected(R"("llama3")", {"an object with a rope_type is expected"});
    rejected(R"({"rope_type": "linear"})", {"factor is missing, a positive number is expected"});
    rejected(R"({"rope_type": "linear", "factor": 0.0})", {"factor is 0"});
    rejected(R"({"rope_type": "linear", "factor": "2"})", {"factor is \"2\""});
    for (const char* extreme : {"1e-300", "1e300"})
        rejected(fmt::format(R"({{"rope_type": "linear", "factor": {}}})", extreme),
                 {"a number from 1e-09 to 1000000000"});
    rejected(R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0})",
             {"original_max_position_embeddings is missing"});
    rejected(R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 8192})",
             {"high_freq_factor is not above low_freq_factor"});
    rejected(R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "truncate": 1})",
             {"truncate is 1, not true or false"});
    rejected(R"({"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5})", {"some dimensions only"});
    rejected(R"({"rope_theta": 500.0, "partial_rotary_factor": 0.5})", {"some dimensions only"});
}

TEST(RopeReference, IsMultiplicationByComplexNumbers) {
    for (const auto style : styles)
        for (const std::size_t dim : {2, 4, 6, 64, 128})
            for (const double base : {10.0, 10000.0, 500000.0}) {
                const arma::mat block = random_block(40, dim);
                const auto positions = scattered(40);
                EXPECT_LT(arma::abs(apply_rope(block, {base, style}, positions) -
                                    complex_rope(block, {base, style}, positions))
                              .max(),
                          1e-13)
                    << rope_style_name(style) << ' ' << dim << ' ' << base;
            }
}

// Computed by hand: for d = 4 and base 100 pair 0 is rotated by p and pair 1 by p / 10.
TEST(RopeReference, AgreesWithATokenComputedByHand) {
    const arma::mat row = {{1.0, 0.0, 0.0, 2.0}};
    const std::vector<double> at = {3.0};
    const arma::mat half = apply_rope(row, {100.0, RopeStyle::rotate_half}, at);
    EXPECT_LT(
        arma::abs(half - arma::mat{{std::cos(3.0), -2.0 * std::sin(0.3), std::sin(3.0), 2.0 * std::cos(0.3)}}).max(),
        1e-15);
    const arma::mat interleaved = apply_rope(row, {100.0, RopeStyle::interleaved}, at);
    EXPECT_LT(
        arma::abs(interleaved - arma::mat{{std::cos(3.0), std::sin(3.0), -2.0 * std::sin(0.3), 2.0 * std::cos(0.3)}})
            .max(),
        1e-15);
}

TEST(RopeControl, StylesBasesAndDirectionsDiffer) {
    const arma::mat block = random_block(10, 8);
    const auto positions = scattered(10);
    const arma::mat half = apply_rope(block, {10000.0, RopeStyle::rotate_half}, positions);
    EXPECT_GT(arma::abs(half - apply_rope(block, {10000.0, RopeStyle::interleaved}, positions)).max(), 0.1);
    EXPECT_GT(arma::abs(half - apply_rope(block, {500000.0, RopeStyle::rotate_half}, positions)).max(), 0.1);
    EXPECT_GT(arma::abs(half - undo_rope(block, {10000.0, RopeStyle::rotate_half}, positions)).max(), 0.1);
}

// The rows e_j at one position give the matrix of that position.
TEST(RopeIdentity, IsOrthogonalForEachToken) {
    for (const auto style : styles)
        for (const double position : {0.0, 1.0, 1000.5, -77.0, 1e6}) {
            const arma::mat one(64, 64, arma::fill::eye);
            const arma::mat rotation = apply_rope(one, {10000.0, style}, std::vector<double>(64, position));
            EXPECT_LT(arma::abs(rotation.t() * rotation - one).max(), 1e-15) << position;
            EXPECT_NEAR(arma::det(rotation), 1.0, 1e-13);
        }
}

TEST(RopeIdentity, UndoInvertsApply) {
    for (const auto style : styles)
        for (const double first : {0.0, 4096.0, 1e6}) {
            const arma::mat block = random_block(128, 128);
            const Rope rope{10000.0, style};
            EXPECT_LT(arma::abs(undo_rope(apply_rope(block, rope, first), rope, first) - block).max(), 1e-14);
            EXPECT_LT(arma::abs(apply_rope(undo_rope(block, rope, first), rope, first) - block).max(), 1e-14);
        }
    const arma::mat block = random_block(30, 6);
    EXPECT_EQ(arma::abs(apply_rope(block, {}, std::vector<double>(30, 0.0)) - block).max(), 0.0);
}

TEST(RopeIdentity, PositionsCompose) {
    const arma::mat block = random_block(50, 64);
    const auto positions = scattered(50);
    for (const auto style : styles) {
        const Rope rope{10000.0, style};
        std::vector<double> shifted = positions;
        for (double& p : shifted) p += 100.0;
        const arma::mat twice = apply_rope(apply_rope(block, rope, positions), rope, std::vector<double>(50, 100.0));
        EXPECT_LT(arma::abs(twice - apply_rope(block, rope, shifted)).max(), 1e-12);
        std::vector<double> backwards = positions;
        for (double& p : backwards) p = -p;
        EXPECT_EQ(arma::abs(undo_rope(block, rope, positions) - apply_rope(block, rope, backwards)).max(), 0.0);
        // A block that is cut out of a longer one starts at a later position.
        const arma::mat whole = apply_rope(block, rope, 5.0);
        EXPECT_EQ(arma::abs(whole.rows(20, 49) - apply_rope(block.rows(20, 49), rope, 25.0)).max(), 0.0);
    }
}

// The purpose of the embedding: the product of a query and a key depends only on their distance.
TEST(RopeIdentity, ProductsDependOnDifferencesOfPositions) {
    const arma::mat pair = random_block(2, 64);
    const auto product = [&](double p, double q) {
        const arma::mat at = apply_rope(pair, {}, std::vector<double>{p, q});
        return arma::dot(at.row(0), at.row(1));
    };
    EXPECT_NEAR(product(7.0, 3.0), product(1007.0, 1003.0), 1e-11);
    EXPECT_GT(std::abs(product(7.0, 3.0) - product(7.0, 4.0)), 1e-3);
}

TEST(Rope, PairsAreCountedFromTheFastest) {
    EXPECT_EQ(rope_pair(RopeStyle::rotate_half, 1, 8), 1U);
    EXPECT_EQ(rope_pair(RopeStyle::rotate_half, 5, 8), 1U);
    EXPECT_EQ(rope_pair(RopeStyle::interleaved, 2, 8), 1U);
    EXPECT_EQ(rope_pair(RopeStyle::interleaved, 3, 8), 1U);
}

TEST(Rope, StyleNamesRoundTrip) {
    for (const auto style : styles) EXPECT_EQ(parse_rope_style(rope_style_name(style)), style);
    expect_error(ErrorKind::usage, [] { (void)parse_rope_style("interleave"); },
                 {"unknown style of rotary embedding \"interleave\"", "did you mean \"interleaved\""});
}

TEST(Rope, AcceptsBlocksWithoutTokens) { EXPECT_EQ(apply_rope(arma::mat(0, 8), {}, 0.0).n_rows, 0U); }

TEST(Rope, BadArgumentsAreRejected) {
    const auto rejected = [](std::size_t dim, double base, std::vector<double> positions, std::string_view message) {
        const arma::mat block(2, dim, arma::fill::ones);
        expect_error(ErrorKind::usage, [&] { (void)apply_rope(block, {base, {}}, positions); }, {message});
        expect_error(ErrorKind::usage, [&] { (void)undo_rope(block, {base, {}}, positions); }, {message});
    };
    rejected(5, 10000.0, {0.0, 1.0}, "of 5 columns is not possible");
    rejected(4, 1.0, {0.0, 1.0}, "rotary base 1 is not usable");
    rejected(4, std::nan(""), {0.0, 1.0}, "rotary base nan is not usable");
    rejected(4, INFINITY, {0.0, 1.0}, "rotary base inf is not usable");
    rejected(4, 10000.0, {0.0}, "1 positions for 2 tokens");
    rejected(4, 10000.0, {0.0, INFINITY}, "not a finite number");
}

}  // namespace
}  // namespace spiked::sim
