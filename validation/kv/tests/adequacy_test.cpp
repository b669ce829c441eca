#include "validation/kv/adequacy.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/spiked/covariance_spec.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/separable_law.hpp"
#include "validation/kv/block_adequacy.hpp"

namespace spiked::validation {
namespace {

constexpr std::size_t side = 64;
constexpr std::size_t blocks_of_head = 4;
constexpr std::size_t draws = 39;  // the smallest p-value is 0.025
constexpr double level = 0.05;
const stream::StudySeed adequacy_seed = stream::StudySeed::parse("0xade90ac7");

/// How the blocks of a head depart from the spiked model. `none`: spikes of 4, 3 and 2 thresholds in Gaussian noise
/// with A AR(1) and B exponential on a random basis.
enum class Departure {
    none,
    power_law,
    square_root,
    other_scale,
    smaller_scale,
    token_signals,
    loud_tokens,
    sparse_entries,
    hidden_entries
};

/// The block with eigenvalues j^-1 or, with a square-root edge, 1 - .03 (j - 1/2)^(2/3).
arma::mat with_exact_edge(const arma::mat& block, Departure departure) {
    arma::mat left, right;
    arma::vec values;
    arma::svd_econ(left, values, right, block);
    for (arma::uword i = 0; i < values.n_elem; ++i) {
        const double j = static_cast<double>(i + 1);
        values(i) =
            std::sqrt(departure == Departure::power_law ? 1.0 / j : 1.0 - 0.03 * std::cbrt((j - 0.5) * (j - 0.5)));
    }
    return left * arma::diagmat(values) * right.t();
}

std::vector<arma::mat> head_of(Departure departure, std::size_t head) {
    const std::string cell = fmt::format("adequacy head {}", head);
    const sim::CovarianceSpec row{.kind = "ar1", .parameters = {{"rho", 0.4}}};
    const sim::CovarianceSpec column{.kind = "exponential", .parameters = {{"c", 2.0}}, .basis = "haar"};
    sim::SpikedModel model{sim::build_covariance(row, side, sim::MatrixSide::row, adequacy_seed, cell),
                           sim::build_covariance(column, side, sim::MatrixSide::column, adequacy_seed, cell),
                           {}};
    const theory::SeparableLaw law(model.row.spectrum(), model.column.spectrum(), AspectRatio(1.0));
    const double threshold = law.detection_threshold().value;
    for (const double strength : {4.0, 3.0, 2.0}) model.strengths.push_back({strength * threshold});
    if (departure == Departure::sparse_entries) model.entries = sim::EntryLaw::parse("sparse:0.1");
    if (departure == Departure::token_signals)
        model.left_vectors = sim::VectorLaw::parse("localised:1", sim::MatrixSide::row);
    if (departure == Departure::hidden_entries) {
        // Signals of a single entry, above the threshold but within the margin of the rank rule.
        model.strengths.assign(3, {1.2 * threshold});
        model.left_vectors = sim::VectorLaw::parse("sparse:1", sim::MatrixSide::row);
        model.right_vectors = sim::VectorLaw::parse("sparse:1", sim::MatrixSide::column);
    }
    std::vector<arma::mat> blocks;
    for (std::size_t b = 0; b < blocks_of_head; ++b) {
        const auto sample = sim::sample(model, adequacy_seed, cell, b);
        arma::mat block = sample.observed;
        if (departure == Departure::power_law || departure == Departure::square_root)
            block = with_exact_edge(sample.noise, departure);
        if (departure == Departure::other_scale && b == 0) block *= 1.5;
        if (departure == Departure::smaller_scale && b == 0) block /= 1.8;
        if (departure == Departure::loud_tokens)
            for (std::size_t t = 0; t < 6; ++t)
                block.row((13 * b + 9 * t) % side) += sample.noise.row((13 * b + 9 * t) % side);
        blocks.push_back(block);
    }
    return blocks;
}

struct Counts {
    std::uint64_t blocks = 0;
    std::vector<std::uint64_t> rejected = std::vector<std::uint64_t>(adequacy_tests().size());
};

Counts judge_heads(Departure departure, std::size_t heads) {
    Counts counts;
    for (std::size_t head = 0; head < heads; ++head)
        for (const auto& block :
             judge_head(head_of(departure, head), {adequacy_seed, fmt::format("head {}", head), draws, 2})) {
            EXPECT_EQ(block.skipped, "");
            ++counts.blocks;
            for (std::size_t test = 0; test < counts.rejected.size(); ++test)
                counts.rejected[test] += block.p_values[test] < level + 1e-9 ? 1 : 0;
        }
    return counts;
}

/// The count that a test of this level exceeds with probability 1e-7, so below 1e-6 for the seven tests of the model.
double most_rejections(std::uint64_t blocks) {
    const boost::math::binomial counts(static_cast<double>(blocks), level);
    return boost::math::quantile(boost::math::complement(counts, 1e-7));
}

std::size_t place_of(const std::string& name) {
    const auto& tests = adequacy_tests();
    for (std::size_t test = 0; test < tests.size(); ++test)
        if (tests[test].name == name) return test;
    throw precondition_error("no test {}", name);
}

TEST(AdequacyLaw, SpikedBlocksAreRejectedAtTheDeclaredRate) {
    const Counts found = judge_heads(Departure::none, 40);
    const double most = most_rejections(found.blocks);
    for (std::size_t test = 0; test < adequacy_tests().size(); ++test) {
        if (!adequacy_tests()[test].of_model) continue;
        std::cout << fmt::format("{}: {} of {}, at most {}\n", adequacy_tests()[test].name, found.rejected[test],
                                 found.blocks, most);
        EXPECT_LE(static_cast<double>(found.rejected[test]), most) << adequacy_tests()[test].name;
    }
}

struct PlantedDeparture {
    Departure departure;
    std::vector<std::string> seen_by;
};

class AdequacyControl : public testing::TestWithParam<PlantedDeparture> {};

TEST_P(AdequacyControl, IsRejected) {
    const Counts found = judge_heads(GetParam().departure, 10);
    for (const auto& test : GetParam().seen_by) {
        const auto rejected = found.rejected[place_of(test)];
        std::cout << fmt::format("{}: {} of {}\n", test, rejected, found.blocks);
        EXPECT_GT(static_cast<double>(rejected), most_rejections(found.blocks)) << test;
    }
}

INSTANTIATE_TEST_SUITE_P(Departures, AdequacyControl,
                         testing::Values(PlantedDeparture{Departure::power_law,
                                                          {"edge.shape", "left.columns", "left.rows"}},
                                         PlantedDeparture{Departure::other_scale, {"others.top", "others.spectrum"}},
                                         PlantedDeparture{Departure::smaller_scale, {"others.top"}},
                                         PlantedDeparture{Departure::token_signals, {"halves.rank"}},
                                         PlantedDeparture{Departure::loud_tokens, {"halves.edge"}},
                                         PlantedDeparture{Departure::sparse_entries, {"peak.rows"}},
                                         PlantedDeparture{Departure::hidden_entries, {"peak.vectors"}},
                                         PlantedDeparture{Departure::none, {"signal.columns", "signal.rows"}}),
                         [](const auto& planted) {
                             std::string name = planted.param.seen_by.back();
                             std::replace(name.begin(), name.end(), '.', '_');
                             return name;
                         });

TEST(AdequacyIdentity, ThreadsAndScaleChangeNothing) {
    auto blocks = head_of(Departure::none, 0);
    const auto one = judge_head(blocks, {adequacy_seed, "cell", draws, 1});
    for (auto& block : blocks) block *= 0x1p-20;
    const auto other = judge_head(blocks, {adequacy_seed, "cell", draws, 3});
    const auto elsewhere = judge_head(blocks, {adequacy_seed, "another cell", draws, 3});
    bool differs = false;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        EXPECT_EQ(one[b].rank, other[b].rank);
        EXPECT_EQ(one[b].p_values, other[b].p_values);
        EXPECT_NEAR(one[b].power_advantage, other[b].power_advantage, 1e-9);
        EXPECT_NEAR(one[b].peak_over_bound, other[b].peak_over_bound, 1e-9);
        differs = differs || one[b].p_values != elsewhere[b].p_values;
    }
    EXPECT_TRUE(differs) << "another cell has different draws";
}

TEST(AdequacyReference, ExponentAndPeakAreThoseOfTheBlock) {
    std::vector<arma::mat> blocks = head_of(Departure::power_law, 0);
    for (const auto& block : judge_head(blocks, {adequacy_seed, "cell", draws, 1})) {
        EXPECT_NEAR(block.exponent, 1.0, 1e-9);
        EXPECT_GT(block.power_advantage, 10.0);
    }
}

// Computes the bound by hand, from the residual of the block and the channel variances of the other block's residual.
TEST(AdequacyReference, ThePeakIsRelativeToItsBound) {
    auto blocks = head_of(Departure::none, 0);
    blocks.resize(2);
    arma::mat residual[2];
    for (int b = 0; b < 2; ++b) {
        blocks[b] = blocks[b].head_rows(48);  // so that n and d differ
        estimators::AnalysedBlock block(blocks[b], estimators::AnalysedBlock::EmptyLines::keep);
        const auto found =
            estimators::eoptshrink(block.singular_values(), block.shape(), estimators::EOptShrinkOptions::edge_fit());
        residual[b] = block.residual(found.shrunk);
    }
    const auto found = judge_head(blocks, {adequacy_seed, "cell", draws, 1});
    for (int b = 0; b < 2; ++b) {
        double peak = 0.0;
        for (arma::uword t = 0; t < 48; ++t)
            for (arma::uword j = 0; j < side; ++j)
                peak = std::max(peak, std::abs(residual[b](t, j)) / arma::norm(residual[b].row(t)));
        const arma::rowvec energies = arma::sum(arma::square(residual[1 - b]), 0);
        const double kappa = energies.max() / arma::mean(energies);
        EXPECT_NEAR(found[b].peak_over_bound, peak / std::sqrt(2.0 * kappa * std::log(48.0 * side) / side), 1e-9);
    }
}

// `any` counts rejections by the tests of the model only, not by the permutation tests of independent entries.
TEST(AdequacyTable, AnyCountsOnlyTestsOfTheModel) {
    std::string data;
    const auto append = [&](const std::vector<arma::mat>& blocks) {
        for (const auto& block : blocks)
            for (arma::uword t = 0; t < side; ++t)
                for (arma::uword j = 0; j < side; ++j) {
                    const auto entry = static_cast<float>(block(t, j));
                    data.append(reinterpret_cast<const char*>(&entry), sizeof entry);
                }
    };
    for (std::size_t head = 0; head < 8; ++head) append(head_of(Departure::none, head));
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "adequacy-any.safetensors";
    std::ofstream(path, std::ios::binary) << sim::safetensors_bytes(
        fmt::format(
            R"({{"__metadata__":{{"layout":"head,token,dim"}},"layers.0.key":{{"dtype":"F32","shape":[8,{},{}],)"
            R"("data_offsets":[0,{}]}}}})",
            blocks_of_head * side, side, data.size()),
        data);
    AdequacyPlan plan;
    plan.blocks.dumps = {path.string()};
    plan.blocks.block_tokens = side;
    plan.seed = adequacy_seed;
    plan.level = 0.05;
    const Adequacy found = measure_adequacy(plan);
    const AdequacyRow& all = found.rows.front();
    EXPECT_EQ(all.blocks, 8 * blocks_of_head);
    double largest = 0.0;
    double sum = 0.0;
    for (std::size_t test = 0; test < adequacy_tests().size(); ++test) {
        const double fraction = all.rejected[test].estimate;
        if (!adequacy_tests()[test].of_model) continue;
        largest = std::max(largest, fraction);
        sum += fraction;
    }
    EXPECT_EQ(all.rejected[place_of("signal.columns")].estimate, 1.0);
    const double any = all.rejected.back().estimate;
    EXPECT_GE(any, largest);
    EXPECT_LE(any, sum + 1e-12);
    EXPECT_LT(any, 1.0) << "spiked blocks with seven tests at level .05";
    std::filesystem::remove(path);
}

TEST(AdequacyReference, ASquareRootEdgeIsDistinguishedFromAPowerLaw) {
    const std::vector<arma::mat> blocks = head_of(Departure::square_root, 0);
    for (const auto& block : judge_head(blocks, {adequacy_seed, "cell", draws, 1}))
        EXPECT_LT(block.power_advantage, -10.0);
}

TEST(Adequacy, BlocksWithoutNoiseAreNotJudged) {
    auto blocks = head_of(Departure::none, 1);
    blocks[1].zeros();
    const arma::vec left = blocks[2].col(0);
    blocks[2] = left * blocks[3].row(0);
    const auto found = judge_head(blocks, {adequacy_seed, "cell", draws, 2});
    EXPECT_EQ(found[0].skipped, "");
    EXPECT_EQ(found[1].skipped, "zero");
    EXPECT_EQ(found[2].skipped, "no noise: exactly of low rank");
    EXPECT_EQ(found[3].skipped, "");
    blocks[3].zeros();
    EXPECT_EQ(judge_head(blocks, {adequacy_seed, "cell", draws, 2})[0].skipped,
              "no other block of the head to compare with");
    EXPECT_THROW((void)judge_head({blocks[0]}, {adequacy_seed, "cell", draws, 1}), Error);
    EXPECT_THROW((void)judge_head({blocks[0].head_cols(8), blocks[1].head_cols(8)}, {adequacy_seed, "cell", draws, 1}),
                 Error);
}

TEST(Adequacy, EmptyChannelsAndTokensAreAccepted) {
    auto blocks = head_of(Departure::none, 2);
    for (auto& block : blocks) {
        block.col(3).zeros();
        block.row(0).zeros();
    }
    for (const auto& block : judge_head(blocks, {adequacy_seed, "cell", draws, 2})) {
        EXPECT_EQ(block.skipped, "");
        for (const double p : block.p_values) EXPECT_TRUE(p > 0.0 && p <= 1.0);
    }
}

}  // namespace
}  // namespace spiked::validation
