#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "sim/random/cuda/fill_normals.hpp"
#include "sim/spiked/cuda/spiked_blocks.hpp"
#include "sim/spiked/spiked_sampler.hpp"

/// A batch whose noise is drawn and coloured and whose signal is added by kernels, run on emulated blocks and compared
/// with `sample`.
namespace spiked::sim {
namespace {

const auto blocks_seed = stream::StudySeed::parse("0x5eed");
constexpr std::string_view cell = "cuda spiked blocks test";
constexpr std::uint32_t count = 3;
constexpr std::uint64_t first = 7;

arma::vec roots(const Covariance& covariance) { return arma::sqrt(covariance.eigenvalues()); }

struct Batch {
    arma::cube observed, signal;
    arma::fcube observed_as_float, signal_as_float;
};

/// With `drawn`, one kernel draws the noise and computes the samples.
Batch run(const SpikedModel& model, const std::vector<SpikedSample>& expected, bool drawn) {
    const auto n = static_cast<std::uint32_t>(model.row.size());
    const auto d = static_cast<std::uint32_t>(model.column.size());
    const auto rank = static_cast<std::uint32_t>(model.strengths.size());
    Batch batch{arma::cube(n, d, count), arma::cube(n, d, count), arma::fcube(n, d, count), arma::fcube(n, d, count)};
    batch.observed.fill(NAN);
    batch.signal.fill(NAN);
    batch.observed_as_float.fill(NAN);
    batch.signal_as_float.fill(NAN);
    const stream::Stream noise(blocks_seed, cell, stream::Role::noise, first);
    const stream::FillNormals<double> fill{noise.key(), noise.counter(0)[1],    first, count,
                                           n * d,       batch.observed.memptr()};
    const spiked::cuda::EmulatedExecutor executor;
    if (!drawn) executor.launch(fill, fill.blocks());
    arma::cube left(n, rank, count);
    arma::cube right(d, rank, count);
    for (std::uint32_t b = 0; b < count && rank > 0; ++b) {
        left.slice(b) = expected[b].left;
        right.slice(b) = expected[b].right;
    }
    std::vector<double> strengths;
    for (const auto& strength : model.strengths) strengths.push_back(strength.value);
    const arma::vec rows = roots(model.row);
    const arma::vec columns = roots(model.column);
    const SpikedEntries entries{n,
                                d,
                                rank,
                                std::sqrt(static_cast<double>(d)),
                                rows.memptr(),
                                columns.memptr(),
                                strengths.data(),
                                left.memptr(),
                                right.memptr(),
                                batch.observed.memptr(),
                                batch.signal.memptr(),
                                batch.observed_as_float.memptr(),
                                batch.signal_as_float.memptr()};
    const auto launch = [&](const auto& kernel) { executor.launch(kernel, kernel.blocks()); };
    if (drawn)
        launch(DrawnBlocks{fill, entries});
    else
        launch(SpikedBlocks{count, entries, batch.observed.memptr()});
    return batch;
}

TEST(CudaSpikedBlocksReference, ABatchEqualsTheReplicatesOfTheSamplerInTheEigenbasis) {
    const std::vector<std::pair<Covariance, Covariance>> covariances = {
        {Covariance::identity(20), Covariance::identity(33)},
        {Covariance::ar1(0.5, 65), Covariance::ar1(-0.3, 40)},
        {Covariance::diagonal(arma::linspace(0.5, 2.0, 12)), Covariance::ar1(0.9, 64)},
        {Covariance::ar1(0.3, 6), Covariance::identity(9)},
        {Covariance::ar1(0.7, 150), Covariance::identity(11)}};
    for (const auto& [row, column] : covariances)
        for (const auto& [spiked, drawn] :
             {std::pair{false, false}, std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
            if (drawn && row.size() % 2 != 0) continue;
            SCOPED_TRACE(testing::Message() << row.size() << " x " << column.size() << " spiked " << spiked
                                            << (drawn ? ", drawn by the same kernel" : ""));
            SpikedModel model{row, column, {}};
            if (spiked) model.strengths = {SignalStrength{3.0}, SignalStrength{2.0}, SignalStrength{1.0}};
            model.colouring = Colouring::eigenbasis;
            std::vector<SpikedSample> expected;
            for (std::uint32_t b = 0; b < count; ++b) expected.push_back(sample(model, blocks_seed, cell, first + b));
            const Batch batch = run(model, expected, drawn);
            for (std::uint32_t b = 0; b < count; ++b) {
                if (!spiked) {
                    EXPECT_TRUE(arma::all(arma::vectorise(batch.observed.slice(b) == expected[b].noise)))
                        << "the noise is not equal bit for bit";
                    EXPECT_EQ(arma::abs(batch.signal.slice(b)).max(), 0.0);
                }
                EXPECT_LT(arma::abs(batch.signal.slice(b) - expected[b].signal).max(), 1e-14);
                EXPECT_LT(arma::abs(batch.observed.slice(b) - expected[b].observed).max(), 1e-14);
            }
            EXPECT_TRUE(std::ranges::equal(batch.observed_as_float, arma::conv_to<arma::fcube>::from(batch.observed)));
            EXPECT_TRUE(std::ranges::equal(batch.signal_as_float, arma::conv_to<arma::fcube>::from(batch.signal)));
            EXPECT_GT(arma::abs(batch.observed.slice(1) - expected[0].observed).max(), 0.01)
                << "negative control: replicates must differ";
        }
}

}  // namespace
}  // namespace spiked::sim
