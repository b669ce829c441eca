#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/spectral/cuda/shrinkage.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/cuda/decomposition_pipeline.hpp"
#include "estimators/svd/cuda/low_rank.hpp"
#include "sim/random/cuda/fill_normals.hpp"
#include "sim/spiked/cuda/spiked_blocks.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "validation/metrics/cuda/squared_error.hpp"

/// Compares a whole trial, from its address to its loss, by kernels on emulated blocks with the CPU. Each kernel reads
/// the output of the previous one.
namespace spiked::estimators::cuda {
namespace {

const auto trial_seed = stream::StudySeed::parse("0x5eed");
constexpr std::string_view cell = "cuda trial test";
constexpr std::uint32_t trial_count = 3;
constexpr std::uint32_t vectors = 6;
constexpr std::uint32_t signals = 2;
const spiked::cuda::EmulatedExecutor executor;

struct Trials {
    arma::cube observed, signal, residual;
    std::vector<std::uint32_t> ranks;
    std::vector<double> losses;
};

/// Draws the observed blocks and their signals.
void draw(const sim::SpikedModel& model, const std::vector<sim::SpikedSample>& samples, Trials& trials) {
    const auto n = static_cast<std::uint32_t>(model.row.size());
    const auto d = static_cast<std::uint32_t>(model.column.size());
    const stream::Stream noise(trial_seed, cell, stream::Role::noise, 0);
    const stream::FillNormals<double> fill{noise.key(), noise.counter(0)[1],     0, trial_count,
                                           n * d,       trials.observed.memptr()};
    executor.launch(fill, fill.blocks());
    arma::cube left(n, signals, trial_count);
    arma::cube right(d, signals, trial_count);
    for (std::uint32_t b = 0; b < trial_count; ++b) {
        left.slice(b) = samples[b].left;
        right.slice(b) = samples[b].right;
    }
    const arma::vec strengths = {model.strengths[0].value, model.strengths[1].value};
    const arma::vec rows = arma::sqrt(model.row.eigenvalues());
    const arma::vec columns = arma::sqrt(model.column.eigenvalues());
    const sim::SpikedBlocks spike{
        trial_count,
        {n, d, signals, std::sqrt(static_cast<double>(d)), rows.memptr(), columns.memptr(), strengths.memptr(),
         left.memptr(), right.memptr(), trials.observed.memptr(), trials.signal.memptr()},
        trials.observed.memptr()};
    executor.launch(spike, spike.blocks());
}

/// Computes the eOptShrink estimates and their losses, in `Real`.
template <class Real>
void estimate_and_measure(Shape shape, Trials& trials) {
    const auto observed = arma::conv_to<arma::Cube<Real>>::from(trials.observed);
    const auto signal = arma::conv_to<arma::Cube<Real>>::from(trials.signal);
    const bool wide = shape.rows < shape.columns;
    const auto p = static_cast<std::uint32_t>(shape.short_side());
    const BatchSize size{trial_count, static_cast<std::uint32_t>(shape.long_side()), p, wide, vectors};
    DecompositionBatch<Real> batch;
    std::vector<unsigned char> memory(lay_out<Real>(nullptr, nullptr, size, trial_count, batch), 0xFF);
    lay_out(memory.data(), observed.memptr(), size, trial_count, batch);
    decompose(executor, batch, trial_count);

    const EOptShrinkRule rule = eoptshrink_rule(shape, EOptShrinkOptions::edge_fit());
    const std::vector<double> weights = intercept_weights(rule.pilot);
    std::vector<double> work(std::size_t{3} * trial_count * p, NAN);
    std::vector<ShrinkageStatus> answers(trial_count);
    std::vector<double> edges(trial_count);
    const std::vector<double> nothing(trial_count * vectors, NAN);
    auto strengths = nothing;
    auto overlaps_left = nothing;
    auto overlaps_right = nothing;
    auto shrunk = nothing;
    trials.ranks.assign(trial_count, 99);
    const ShrinkBlocks shrink{trial_count,
                              shape,
                              rule,
                              weights.data(),
                              batch.status,
                              batch.values,
                              vectors,
                              work.data(),
                              answers.data(),
                              trials.ranks.data(),
                              edges.data(),
                              strengths.data(),
                              overlaps_left.data(),
                              overlaps_right.data(),
                              shrunk.data()};
    executor.launch(shrink, shrink.blocks());

    arma::Cube<Real> residual(shape.rows, shape.columns, trial_count);
    const LowRankBlocks<Real> estimates{static_cast<std::uint32_t>(shape.rows),
                                        static_cast<std::uint32_t>(shape.columns),
                                        vectors,
                                        vectors,
                                        batch.status,
                                        trials.ranks.data(),
                                        shrunk.data(),
                                        wide ? batch.right_vectors : batch.left_vectors,
                                        wide ? batch.left_vectors : batch.right_vectors};
    const SplitLowRank<Real> split{trial_count, estimates, observed.memptr(), nullptr, residual.memptr()};
    executor.launch(split, split.blocks());
    trials.residual = arma::conv_to<arma::cube>::from(residual);

    std::vector<BlockStatus> status(trial_count);
    std::vector<double> errors(trial_count, NAN);
    std::vector<double> energies(trial_count, NAN);
    trials.losses.assign(trial_count, NAN);
    const LowRankErrors<Real> measure{
        {trial_count, static_cast<std::uint32_t>(shape.rows * shape.columns), signal.memptr(), status.data(),
         errors.data(), energies.data(), trials.losses.data()},
        estimates,
        nullptr};
    executor.launch(measure, measure.blocks());
    EXPECT_EQ(status, std::vector<BlockStatus>(trial_count, BlockStatus::fine));
}

TEST(CudaTrialReference, LossesByKernelsAreThoseOfTheCpu) {
    for (const Shape shape : {Shape{96, 48}, Shape{40, 70}}) {
        sim::SpikedModel model{
            sim::Covariance::ar1(0.4, shape.rows), sim::Covariance::exponential(0.5, shape.columns), {}};
        model.strengths = {SignalStrength{9.0}, SignalStrength{6.0}};
        model.colouring = sim::Colouring::eigenbasis;
        std::vector<sim::SpikedSample> samples;
        for (std::uint32_t b = 0; b < trial_count; ++b) samples.push_back(sim::sample(model, trial_seed, cell, b));
        Trials trials{arma::cube(shape.rows, shape.columns, trial_count),
                      arma::cube(shape.rows, shape.columns, trial_count),
                      {},
                      {},
                      {}};
        draw(model, samples, trials);
        const auto expect_cpu_results = [&](double limit) {
            for (std::uint32_t b = 0; b < trial_count; ++b) {
                SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.columns << " trial " << b);
                AnalysedBlock block(samples[b].observed);
                const Shrinkage shrinkage =
                    eoptshrink(block.singular_values(), block.shape(), EOptShrinkOptions::edge_fit());
                ASSERT_EQ(trials.ranks[b], shrinkage.rank);
                ASSERT_GE(shrinkage.rank, signals);
                EXPECT_LT(arma::abs(trials.residual.slice(b) - block.residual(shrinkage.shrunk)).max(), limit);
                const double loss = std::pow(arma::norm(block.denoised(shrinkage.shrunk) - samples[b].signal, "fro") /
                                                 arma::norm(samples[b].signal, "fro"),
                                             2);
                EXPECT_GT(loss, 100.0 * limit) << "control: the loss is far above the tolerance";
                EXPECT_NEAR(trials.losses[b] / loss, 1.0, 10.0 * limit);
            }
        };
        estimate_and_measure<double>(shape, trials);
        expect_cpu_results(1e-11);
        estimate_and_measure<float>(shape, trials);
        expect_cpu_results(1e-4);
    }
}

}  // namespace
}  // namespace spiked::estimators::cuda
