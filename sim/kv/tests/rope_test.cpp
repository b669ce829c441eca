#include "sim/kv/rope.hpp"

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
