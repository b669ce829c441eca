// All kernels on emulated blocks, with their accesses to global memory watched for races. This file is compiled with
// -fsanitize=thread, whose hooks access_hooks.cpp defines.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "core/device/emulated_machine.hpp"
#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "sim/random/cuda/haar_rotations.hpp"
#include "validation/trials/cuda/batch_passes.hpp"
#include "validation/trials/cuda/trial_batch.hpp"
#include "validation/trials/device_trials.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::EmulatedExecutor;
using spiked::cuda::EmulatedMachine;
using spiked::cuda::GlobalWatch;

std::size_t watched_accesses = 0;

/// An emulated machine whose device memory is watched.
class WatchedMachine : public EmulatedMachine {
public:
    WatchedMachine(int number, std::size_t memory) : EmulatedMachine(number, memory) {}
    WatchedMachine(const WatchedMachine&) = delete;
    ~WatchedMachine() { count(); }
    unsigned char* reserve(std::size_t bytes) {
        count();
        unsigned char* const memory = EmulatedMachine::reserve(bytes);
        watch_ = std::make_unique<GlobalWatch>(memory, bytes);
        return memory;
    }

private:
    void count() {
        if (watch_) watched_accesses += watch_->accesses();
        watch_.reset();
    }
    std::unique_ptr<GlobalWatch> watch_;
};

constexpr std::size_t watched_memory = std::size_t{64} << 20;

/// Adds up the accesses of the machines that `work` makes.
template <class Work>
std::size_t accesses_of(const Work& work) {
    watched_accesses = 0;
    work();
    return watched_accesses;
}

void watch_trials(const cuda::TrialPlan& plan, std::size_t count) {
    EXPECT_GT(accesses_of([&] {
                  cuda::TrialBatch<WatchedMachine> device(0, watched_memory);
                  for (const auto& trial : device.run(plan, 3, count, {}, nullptr))
                      EXPECT_EQ(trial.status, cuda::TrialStatus::fine);
              }),
              100'000U);
}

TEST(GlobalMemory, NoKernelOfATrialHasARace) {
    const auto seed = stream::StudySeed::parse("0x5eed");
    for (const estimators::Shape shape : {estimators::Shape{20, 16}, estimators::Shape{12, 32}})
        for (const auto precision : {estimators::Precision::float32, estimators::Precision::float64}) {
            sim::SpikedModel model{
                sim::Covariance::ar1(0.4, shape.rows), sim::Covariance::exponential(1.0, shape.columns), {}};
            model.strengths = {SignalStrength{6.0}, SignalStrength{4.0}};
            model.colouring = shape.rows > shape.columns ? sim::Colouring::dense : sim::Colouring::eigenbasis;
            auto plan = trial_plan(model, seed, "watched", precision,
                                   {estimators::eoptshrink_rule(shape, estimators::EOptShrinkOptions::edge_fit())});
            for (const auto& [name, rotation] : {std::pair{"eoptshrink+tq-prod", estimators::RotationKind::haar},
                                                 std::pair{"eden", estimators::RotationKind::rht2},
                                                 std::pair{"kivi:group=8", estimators::RotationKind::identity}}) {
                const auto method = estimators::parse_method(name);
                const estimators::QuantizerOptions options{.rotation = rotation, .seed = seed};
                plan.codecs.push_back(trial_codec(method.quantizer, options, shape, 3));
                plan.codecs.back().low_rank = low_rank_part(method, options, shape);
                if (rotation == estimators::RotationKind::haar) plan.rotation = drawn_rotation(options);
            }
            watch_trials(plan, 3);
        }
}

/// Rows that are too long for the kernels that shorter ones take, and products of several tiles.
TEST(GlobalMemory, NoKernelOfATrialWithLongRowsHasARace) {
    const auto seed = stream::StudySeed::parse("0x5eed");
    constexpr estimators::Shape shape{70, 130};
    sim::SpikedModel model{sim::Covariance::ar1(0.4, shape.rows), sim::Covariance::exponential(1.0, shape.columns), {}};
    model.strengths = {SignalStrength{6.0}, SignalStrength{4.0}};
    auto plan = trial_plan(model, seed, "watched", estimators::Precision::float32, {});
    EXPECT_GT(shape.columns, (stream::HaarFrames<double, 1, 4>::most_rows));
    EXPECT_EQ(stream::frame_factors(shape.columns), 0U) << "rotations are by reflectors";
    const estimators::QuantizerOptions options{.rotation = estimators::RotationKind::haar, .seed = seed};
    plan.codecs.push_back(trial_codec(estimators::parse_method("tq-mse").quantizer, options, shape, 3));
    plan.rotation = drawn_rotation(options);
    watch_trials(plan, 1);
}

/// A shape for every tile of registers, one that they do not hold, and one whose vectors need more than shared memory;
/// wide blocks are transposed when they are read.
TEST(GlobalMemory, NoDecompositionHasARace) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    struct Wanted {
        unsigned rows, columns, vectors;
        bool in_shared = true;  ///< whether shared memory holds what the vectors need
    };
    for (const bool in_float : {true, false})
        for (const auto& [rows, columns, vectors, in_shared] : {Wanted{20, 32, 3},
                                                                {64, 40, 3},
                                                                {90, 66, 3},
                                                                {128, 64, 3},
                                                                {100, 98, 3},
                                                                {20, 130, 3},
                                                                {165, 162, 16, false}}) {
            const estimators::cuda::BatchSize size{2, std::max(rows, columns), std::min(rows, columns), rows < columns,
                                                   vectors};
            EXPECT_EQ(estimators::cuda::BidiagonalVectors<float>::memory_of_block(size) == 0, in_shared);
            cuda::BlocksToDecompose blocks{rows, columns, vectors, in_float, {}};
            for (std::size_t i = 0; i < std::size_t{rows} * columns; ++i) blocks.blocks.push_back(normal(random));
            EXPECT_GT(accesses_of([&] {
                          const auto pass = cuda::decomposition_pass_on<WatchedMachine>(
                              0, watched_memory, blocks, 2, cuda::DecompositionPart::vectors);
                          pass->run();
                          (void)pass->outcome();
                      }),
                      std::size_t{rows} * columns);
        }
}

/// Frames in which columns that nearly depend on others are made orthogonal once more.
TEST(GlobalMemory, NoRotationHasARace) {
    constexpr std::uint32_t count = 2;
    constexpr std::uint32_t size = 70;
    constexpr std::size_t entries = std::size_t{count} * size * size;
    std::mt19937_64 random(8);
    std::normal_distribution<double> normal;
    std::vector<double> memory(3 * entries);
    for (std::size_t i = 0; i < entries; ++i) memory[i] = normal(random);
    for (const std::size_t column : {std::size_t{50}, std::size_t{69}})  // of the second frame
        for (std::size_t i = 0; i < size; ++i) {
            double* const of_second = memory.data() + entries / 2;
            of_second[column * size + i] = of_second[3 * size + i] + 1e-5 * of_second[column * size + i];
        }
    std::vector<std::uint32_t> first_unsure(count);
    const GlobalWatch watch(memory.data(), memory.size() * sizeof(double));
    EmulatedExecutor executor;
    stream::launch_haar_rotations(executor, count, size, size, memory.data(),
                                  {memory.data() + entries, first_unsure.data()},
                                  reinterpret_cast<float*>(memory.data() + 2 * entries));
    EXPECT_EQ(first_unsure, (std::vector<std::uint32_t>{size, 50}));
    EXPECT_GT(watch.accesses(), 6 * entries);
}

/// A kernel with a race that the watch must find, and the same without it.
struct Shift {
    static constexpr unsigned threads = 64;
    enum class Barrier { none, of_the_block, of_the_warp } barrier;
    unsigned distance;  ///< between the number that a thread writes and the one that it reads
    float* numbers;
    float* to;

    [[nodiscard]] static std::size_t shared_bytes() { return 0; }
    template <class Team>
    void operator()(Team& team, unsigned block) const {
        const unsigned at = block * threads + team.rank();
        numbers[at] = static_cast<float>(at);
        if (barrier == Barrier::of_the_block) team.barrier();
        if (barrier == Barrier::of_the_warp) team.warp_barrier();
        to[at] = numbers[(at + distance) % (2 * threads)];
    }
};

/// Runs a kernel twice, and returns the message about its race.
template <class Kernel>
std::string message_about(const Kernel& kernel, unsigned blocks) {
    try {
        for (int launch = 0; launch < 2; ++launch) EmulatedExecutor().launch(kernel, blocks);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

std::string race_of(Shift::Barrier barrier, unsigned distance, unsigned blocks) {
    std::vector<float> memory(4 * Shift::threads);
    const GlobalWatch watch(memory.data(), memory.size() * sizeof(float));
    const Shift kernel{barrier, distance, memory.data(), memory.data() + 2 * Shift::threads};
    const std::string message = message_about(kernel, blocks);
    if (!message.empty()) return message;
    EXPECT_EQ(watch.accesses(), 2U * 3U * blocks * Shift::threads);
    return "";
}

TEST(GlobalMemoryControl, RacesWithinABlockAndBetweenBlocksAreFound) {
    using Barrier = Shift::Barrier;
    EXPECT_EQ(race_of(Barrier::none, 0, 2), "") << "every thread has its own number";
    EXPECT_NE(race_of(Barrier::none, 2 * Shift::threads - 1, 1).find("with no barrier between"), std::string::npos);
    EXPECT_EQ(race_of(Barrier::of_the_block, 2 * Shift::threads - 1, 1), "") << "launches are in order";
    EXPECT_EQ(race_of(Barrier::of_the_block, 1, 1), "");
    EXPECT_NE(race_of(Barrier::of_the_warp, 2 * Shift::threads - 1, 1), "") << "thread 32 reads from another warp";
    const std::string between = race_of(Barrier::of_the_block, 2 * Shift::threads - 1, 2);
    EXPECT_NE(between.find("with no barrier between"), std::string::npos) << "no barrier orders blocks";
    EXPECT_NE(between.find("Shift"), std::string::npos) << between;
}

/// Threads `first_reader`, .. of each block read a number, which the last one of the last block then writes.
struct WriteAfterReads {
    static constexpr unsigned threads = 64;
    Shift::Barrier barrier;
    unsigned first_reader;
    unsigned last_block;
    float* number;
    float* to;

    [[nodiscard]] static std::size_t shared_bytes() { return 0; }
    template <class Team>
    void operator()(Team& team, unsigned block) const {
        if (team.rank() >= first_reader) to[block * threads + team.rank()] = *number;
        if (barrier == Shift::Barrier::of_the_block) team.barrier();
        if (barrier == Shift::Barrier::of_the_warp) team.warp_barrier();
        if (block == last_block && team.rank() == threads - 1) *number = 1.0F;
    }
};

std::string race_with_reads(Shift::Barrier barrier, unsigned first_reader, unsigned blocks) {
    std::vector<float> memory(1 + 2 * WriteAfterReads::threads);
    const GlobalWatch watch(memory.data(), memory.size() * sizeof(float));
    const std::string message =
        message_about(WriteAfterReads{barrier, first_reader, blocks - 1, memory.data(), memory.data() + 1}, blocks);
    EXPECT_GT(watch.accesses(), 0U);
    return message;
}

TEST(GlobalMemoryControl, AWriteByTheLastOfSeveralReadersIsARace) {
    using Barrier = Shift::Barrier;
    EXPECT_EQ(race_with_reads(Barrier::none, 63, 1), "") << "the only reader writes";
    EXPECT_NE(race_with_reads(Barrier::none, 32, 1), "") << "the other readers are lanes of its warp";
    EXPECT_EQ(race_with_reads(Barrier::of_the_warp, 32, 1), "");
    EXPECT_NE(race_with_reads(Barrier::of_the_warp, 0, 1), "") << "no barrier orders the other warp";
    EXPECT_EQ(race_with_reads(Barrier::of_the_block, 0, 1), "");
    EXPECT_NE(race_with_reads(Barrier::of_the_block, 0, 2), "") << "no barrier orders the block before";
}

}  // namespace
}  // namespace spiked::validation
