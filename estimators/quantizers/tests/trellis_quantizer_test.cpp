#include "estimators/quantizers/trellis_quantizer.hpp"

#include <gtest/gtest.h>

#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/rate_distortion.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t d = 10;
const QuantizerOptions bare = {.rotation = RotationKind::identity,
                               .codebook = CodebookKind::normal,
                               .norm = NumberFormat::fp64,
                               .seed = test_seed};

/// Decodes one row of `symbols` in the documented layout: a norm with which the levels are decoded unchanged, then
/// symbols.
arma::mat levels_of(const RowQuantizer& quantizer, const std::vector<std::uint64_t>& symbols, unsigned bits) {
    BitWriter writer;
    writer.write(Item::norms, encode_number(std::sqrt(static_cast<double>(d)), NumberFormat::fp64, "norm"), 64);
    for (const std::uint64_t symbol : symbols) writer.write(Item::indices, symbol, bits);
    return quantizer.decode(writer.bytes(), 1);
}

// One bit per coordinate and a state of four bits: exhaustive search over all 1024 tail-biting paths.
TEST(TrellisReference, NoTailBitingPathWithTheSameEndIsCloser) {
    const RowQuantizer quantizer = row_quantizer("tcq:state=4", d, 1, bare);
    std::size_t best_of_all = 0;
    for (std::uint64_t draw = 0; draw < 50; ++draw) {
        const arma::mat row = std::sqrt(static_cast<double>(d)) * arma::normalise(gaussian(1, d, draw), 2, 1);
        const Encoded encoded = quantizer.encode(row);
        BitReader reader(encoded.bytes);
        (void)reader.read(64);
        std::vector<std::uint64_t> chosen(d);
        for (auto& symbol : chosen) symbol = reader.read(1);
        const double found = arma::norm(row - levels_of(quantizer, chosen, 1), "fro");
        double closest = std::numeric_limits<double>::infinity();
        double closest_of_all = closest;
        for (unsigned path = 0; path < 1U << d; ++path) {
            std::vector<std::uint64_t> symbols(d);
            for (std::size_t i = 0; i < d; ++i) symbols[i] = path >> i & 1U;
            const double error = arma::norm(row - levels_of(quantizer, symbols, 1), "fro");
            closest_of_all = std::min(closest_of_all, error);
            if (std::equal(symbols.end() - 3, symbols.end(), chosen.end() - 3)) closest = std::min(closest, error);
        }
        EXPECT_NEAR(found, closest, 1e-6);
        EXPECT_GE(found, closest_of_all - 1e-6);
        best_of_all += found < closest_of_all + 1e-6 ? 1 : 0;
    }
    std::cout << "best of all closed paths: " << best_of_all << " of 50\n";
}

TEST(TrellisReference, TheLevelOfAStateIsLookedUpByItsLastBits) {
    // The state has three bits besides the symbol's own two; computed by hand from the table.
    const std::vector<float> table =
        trellis_levels({.rotation = rotation_options(bare), .codebook = bare.codebook, .state_bits = 5}, d, 2);
    ASSERT_EQ(table.size(), 32U);
    const std::vector<std::uint64_t> symbols = {1, 3, 0, 2, 2, 1, 0, 3, 3, 2};
    const arma::mat levels = levels_of(row_quantizer("tcq:state=5", d, 2, bare), symbols, 2);
    // The bits before the first symbol are the last ones.
    EXPECT_NEAR(levels(0, 0), static_cast<double>(table[0b1'10'01]), 1e-6);
    EXPECT_NEAR(levels(0, 1), static_cast<double>(table[0b0'01'11]), 1e-6);
    EXPECT_NEAR(levels(0, 2), static_cast<double>(table[0b1'11'00]), 1e-6);
    EXPECT_NEAR(levels(0, 9), static_cast<double>(table[0b1'11'10]), 1e-6);
    // For every state, one of the four next levels lies in each quarter of the law.
    for (std::size_t group = 0; group < 8; ++group) {
        std::vector<float> next(table.begin() + static_cast<std::ptrdiff_t>(4 * group),
                                table.begin() + static_cast<std::ptrdiff_t>(4 * group + 4));
        std::sort(next.begin(), next.end());
        EXPECT_LT(next[0], -0.674F);
        EXPECT_GT(next[3], 0.674F);
        EXPECT_LT(next[1], 0.0F);
        EXPECT_GT(next[2], 0.0F);
    }
}

TEST(TrellisLaw, LiesBetweenShannonsBoundAndTheScalarQuantizer) {
    const arma::mat rows = gaussian(128, 128, 3);
    const auto errors = [&rows](const char* name, unsigned bits) {
        const arma::mat decoded =
            through(row_quantizer(name, 128, bits, {.norm = NumberFormat::fp32, .seed = test_seed}), rows);
        return arma::vec(arma::sum(arma::square(decoded - rows), 1) / arma::sum(arma::square(rows), 1));
    };
    // The error of a tail-biting path with a state of 12 bits.
    for (const auto& [bits, most] : {std::pair{1U, 0.280}, {2U, 0.0725}, {3U, 0.0196}}) {
        const MeanTest found(errors("tcq", bits), most, 3);
        EXPECT_LT(found.mean + found.limit, most) << bits;
        EXPECT_GT(found.mean - found.limit, theory::shannon_distortion(bits)) << bits;
        const double scalar = theory::lloyd_max_sphere(128, static_cast<int>(bits)).distortion;
        std::cout << bits << " bits: " << found.mean << " +- " << found.limit << ", Lloyd-Max " << scalar
                  << ", Shannon " << theory::shannon_distortion(bits) << "\n";
    }
    // Negative control: a state of fewer bits is worse.
    const MeanTest control(errors("tcq:state=4", 2), 0.0725, 3);
    EXPECT_GT(control.mean - control.limit, 0.0725);
}

/// Smallest relative squared error of a row over all starts of the trellis and all scales of the path found.
double error_with_free_start(const std::vector<float>& table, unsigned bits, const arma::rowvec& row) {
    const std::size_t branches = std::size_t{1} << bits;
    const std::size_t groups = table.size() / branches;
    std::vector<double> costs(table.size(), 0.0), best(groups);
    std::vector<std::vector<std::uint32_t>> came(row.n_elem, std::vector<std::uint32_t>(groups));
    for (std::size_t i = 0; i < row.n_elem; ++i) {
        for (std::size_t g = 0; g < groups; ++g) {
            came[i][g] = static_cast<std::uint32_t>(g);
            for (std::size_t s = g; s < costs.size(); s += groups)
                if (costs[s] < costs[came[i][g]]) came[i][g] = static_cast<std::uint32_t>(s);
            best[g] = costs[came[i][g]];
        }
        for (std::size_t s = 0; s < costs.size(); ++s) {
            const double off = row(i) - static_cast<double>(table[s]);
            costs[s] = best[s / branches] + off * off;
        }
    }
    auto state = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    double across = 0.0;
    double energy = 0.0;
    for (std::size_t i = row.n_elem; i-- > 0; state = came[i][state / branches]) {
        const double level = static_cast<double>(table[state]);
        across += row(i) * level;
        energy += level * level;
    }
    return 1.0 - across * across / (energy * arma::dot(row, row));
}

// Published figures for rows of 128 (.067 at 2 bits, 12-bit state) do not count the bits of the start state, 10 per
// row; without counting them this table is slightly better.
TEST(TrellisLaw, ReachesThePublishedFigureIfItsStartIsNotCounted) {
    const arma::mat rows = arma::normalise(gaussian(400, 128, 8), 2, 1) * std::sqrt(128.0);
    const auto errors = [&rows](unsigned state_bits) {
        const std::vector<float> table =
            trellis_levels({.rotation = {.seed = test_seed}, .state_bits = state_bits}, 128, 2);
        arma::vec found(rows.n_rows);
        for (std::size_t t = 0; t < rows.n_rows; ++t) found(t) = error_with_free_start(table, 2, rows.row(t));
        return found;
    };
    const MeanTest found(errors(12), 0.067, 2);
    EXPECT_LE(found.mean + found.limit, 0.067) << found;
    EXPECT_GT(found.mean - found.limit, theory::shannon_distortion(2.0 + 10.0 / 128.0)) << "the start's bits counted";
    // Negative control: a state of two bits less does not reach the figure.
    const MeanTest control(errors(10), 0.067, 2);
    EXPECT_GT(control.mean - control.limit, 0.067) << control;
}

TEST(Trellis, TheUnbiasedScaleKeepsTheProductOfARowWithItself) {
    const arma::mat rows = gaussian(20, 24, 6);
    const arma::mat decoded =
        through(row_quantizer("tcq:scale=unbiased", 24, 2, {.norm = NumberFormat::fp64, .seed = test_seed}), rows);
    for (std::size_t t = 0; t < rows.n_rows; ++t)
        EXPECT_NEAR(arma::dot(rows.row(t), decoded.row(t)) / arma::dot(rows.row(t), rows.row(t)), 1.0, 1e-12);
}

TEST(Trellis, RowsOfSeveralChunksAreDecodedFromTheirOwn) {
    // Chunks of 2^13 coordinates: 3 of them and a shorter one.
    const arma::mat rows = gaussian(52, 512, 7);
    const RowQuantizer quantizer = row_quantizer("tcq:state=6", 512, 2, {.seed = test_seed});
    const arma::mat decoded = through(quantizer, rows);
    for (std::size_t t = 0; t < rows.n_rows; ++t)
        EXPECT_LT(std::pow(relative_error(decoded.row(t), rows.row(t)), 2), 0.14) << t;
}

}  // namespace
}  // namespace spiked::estimators
