#include "validation/trials/device_trials.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/device/emulated_machine.hpp"
#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "validation/trials/cuda/trial_batch.hpp"
#include "validation/trials/parity.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::DeviceFailure;
using spiked::cuda::EmulatedMachine;

const auto device_seed = stream::StudySeed::parse("0x5eed");
constexpr std::size_t plenty = std::size_t{64} << 20;

sim::SpikedModel small_model() {
    sim::SpikedModel model{sim::Covariance::ar1(0.4, 12), sim::Covariance::exponential(1.0, 10), {}};
    model.strengths = {SignalStrength{6.0}, SignalStrength{4.0}};
    return model;
}

cuda::TrialPlan small_plan(const sim::SpikedModel& model, estimators::Precision precision) {
    return trial_plan(model, device_seed, "device trials", precision,
                      {estimators::eoptshrink_rule({12, 10}, {}),
                       estimators::eoptshrink_rule({12, 10}, estimators::EOptShrinkOptions::edge_fit())});
}

cuda::DrawTrial draw_of(const sim::SpikedModel& model) {
    return [&model](std::uint64_t replicate, const cuda::TrialDraw& to) {
        const auto sides = sim::signal_sides(model, device_seed, "device trials", replicate);
        if (to.left != nullptr) std::copy(sides.left.begin(), sides.left.end(), to.left);
        if (to.right != nullptr) std::copy(sides.right.begin(), sides.right.end(), to.right);
    };
}

/// All numbers of a trial.
std::vector<double> numbers(const cuda::TrialResult& trial) {
    std::vector<double> all = trial.values;
    const auto add = [&](const std::vector<double>& more) { all.insert(all.end(), more.begin(), more.end()); };
    add(trial.left_products);
    add(trial.right_products);
    add({trial.energy, static_cast<double>(trial.status)});
    for (const auto& estimate : trial.estimates) {
        add({static_cast<double>(estimate.rank), estimate.bulk_edge.value_or(-1.0), estimate.error});
        add(estimate.strengths);
        add(estimate.shrunk);
    }
    return all;
}

TEST(DeviceTrials, DoNotDependOnTheBatchSize) {
    const sim::SpikedModel model = small_model();
    for (const auto precision : {estimators::Precision::float64, estimators::Precision::float32}) {
        const auto plan = small_plan(model, precision);
        const auto at_once = cuda::emulated_trials(plenty, plenty);
        const auto in_one_batch = at_once->run(plan, 3, 9, draw_of(model), nullptr);
        ASSERT_EQ(in_one_batch.size(), 9U);
        EXPECT_EQ(at_once->chunk(), 9U);
        const auto little = cuda::emulated_trials(std::size_t{100} << 10, plenty);
        const auto in_chunks = little->run(plan, 3, 9, draw_of(model), nullptr);
        EXPECT_LT(little->chunk(), 9U);
        for (std::size_t t = 0; t < 9; ++t) {
            EXPECT_EQ(numbers(in_chunks[t]), numbers(in_one_batch[t])) << t;
            EXPECT_EQ(numbers(at_once->run(plan, 3 + t, 1, draw_of(model), nullptr).front()), numbers(in_one_batch[t]))
                << t;
            EXPECT_EQ(in_one_batch[t].status, cuda::TrialStatus::fine);
        }
    }
}

TEST(DeviceTrials, AFailedAllocationHalvesTheBatchOnceAndChangesNoNumber) {
    const sim::SpikedModel model = small_model();
    const auto plan = small_plan(model, estimators::Precision::float64);
    const auto at_once = cuda::emulated_trials(plenty, plenty);
    const auto in_one_batch = at_once->run(plan, 0, 8, draw_of(model), nullptr);
    std::size_t halved = 0;
    std::size_t rejected = 0;
    for (std::size_t kib = 8; kib <= 256; kib += 8) {
        const auto tight = cuda::emulated_trials(plenty, kib << 10);
        try {
            const auto found = tight->run(plan, 0, 8, draw_of(model), nullptr);
            EXPECT_TRUE(tight->chunk() == 8U || tight->chunk() == 4U);
            halved += tight->chunk() == 4U ? 1 : 0;
            for (std::size_t t = 0; t < 8; ++t) EXPECT_EQ(numbers(found[t]), numbers(in_one_batch[t]));
        } catch (const DeviceFailure& failure) {
            EXPECT_TRUE(failure.out_of_memory());
            ++rejected;
        }
    }
    EXPECT_GT(halved, 0U);
    EXPECT_GT(rejected, 0U) << "less than half of the batch is not tried";
}

/// These row quantizers have kernels, so that studies and `kv encode` can use them on a GPU; for others the reason is
/// given.
TEST(DeviceTrials, QuantizersHaveKernelsOrAReason) {
    const auto unsupported_reason = [](const char* name, const estimators::QuantizerOptions& options = {},
                                       double bits = 2) {
        return coding_unsupported_reason(estimators::parse_method(name), options, {12, 10}, bits);
    };
    for (const char* name :
         {"tq-mse", "eden", "eden-mmse", "eden-norm", "tq-prod", "kivi", "kivi-hf:group=5", "kivi:group=3:axis=key"})
        EXPECT_EQ(unsupported_reason(name), "") << name;
    EXPECT_EQ(unsupported_reason("tq-prod", {}, 3), "");
    EXPECT_NE(coding_unsupported_reason(estimators::parse_method("tq-prod"), {}, {3, 5}, 3), "")
        << "45 bits are not a whole number of bytes";
    EXPECT_NE(unsupported_reason("kivi", {.residual = 4}), "");
    EXPECT_EQ(unsupported_reason("kivi:residual=0", {.residual = 4}), "");
    EXPECT_NE(unsupported_reason("kivi:residual=4"), "");
    EXPECT_NE(unsupported_reason("kivi-hf:group=4"), "") << "groups of 4 go on in the next row of 10";
    EXPECT_NE(unsupported_reason("tq-mse", {.norm = estimators::NumberFormat::bf16}), "");
    EXPECT_EQ(unsupported_reason("tq-prod:projection=orthogonal"), "tq-prod:projection=orthogonal");
    EXPECT_EQ(unsupported_reason("eoptshrink+tq-mse"), "eoptshrink+tq-mse");
}

TEST(DeviceTrials, BatchesGoToTheDeviceWithTheFewestRunning) {
    // Two GPUs with three slots each: the first two batches go to different GPUs, the next to a slot that has memory.
    std::vector<FreeSlot> free = {{0, false}, {0, false}, {0, false}, {1, false}, {1, false}, {1, false}};
    const auto take = [&] {
        const std::size_t at = slot_to_take(free);
        const FreeSlot taken = free[at];
        free.erase(free.begin() + static_cast<std::ptrdiff_t>(at));
        return taken;
    };
    EXPECT_EQ(take().device_index, 0U);
    EXPECT_EQ(take().device_index, 1U);
    free.push_back({1, true});  // returned, so that no batch runs on this GPU
    const FreeSlot third = take();
    EXPECT_EQ(third.device_index, 1U);
    EXPECT_TRUE(third.ready);
    std::map<std::size_t, int> rest;
    while (!free.empty()) ++rest[take().device_index];
    EXPECT_EQ(rest[0], 2);
    EXPECT_EQ(rest[1], 2);
}

TEST(DeviceTrials, VectorsDrawnByKernelsAreThoseOfTheHost) {
    for (const auto colouring : {sim::Colouring::dense, sim::Colouring::eigenbasis}) {
        sim::SpikedModel model = small_model();
        model.colouring = colouring;
        const auto plan = small_plan(model, estimators::Precision::float64);
        ASSERT_FALSE(plan.has_host_draws());
        EXPECT_EQ(plan.left->basis_change.empty(), colouring == sim::Colouring::dense);
        const auto device = cuda::emulated_trials(plenty, plenty);
        const auto drawn = device->run(plan, 7, 5, {}, nullptr);
        for (const bool both : {true, false}) {
            auto host_plan = plan;
            host_plan.left.reset();
            if (both) host_plan.right.reset();
            ASSERT_TRUE(host_plan.has_host_draws());
            const auto by_host = device->run(host_plan, 7, 5, draw_of(model), nullptr);
            for (std::size_t t = 0; t < 5; ++t) {
                const auto found = numbers(drawn[t]);
                const auto expected = numbers(by_host[t]);
                ASSERT_EQ(found.size(), expected.size());
                for (std::size_t i = 0; i < found.size(); ++i)
                    // The sign of a singular vector is arbitrary and depends on rounding.
                    EXPECT_NEAR(std::abs(found[i]), std::abs(expected[i]), 1e-10 * (1.0 + std::abs(expected[i])))
                        << t << " " << i;
            }
        }
    }
    // Vectors of another law are drawn by the host.
    sim::SpikedModel other = small_model();
    other.left_vectors = sim::VectorLaw::parse("localised:1", sim::MatrixSide::row);
    const auto plan = small_plan(other, estimators::Precision::float64);
    EXPECT_FALSE(plan.left);
    EXPECT_TRUE(plan.right);
}

TEST(DeviceTrials, AFailedTrialHasItsStatusAndDoesNotChangeOthers) {
    const sim::SpikedModel model = small_model();
    auto plan = small_plan(model, estimators::Precision::float64);
    plan.left.reset();  // drawn by the host, so that the test can modify it
    const auto device = cuda::emulated_trials(plenty, plenty);
    const auto unmodified = device->run(plan, 0, 4, draw_of(model), nullptr);
    const auto with_entry = [&](double entry) {
        return device->run(
            plan, 0, 4,
            [&](std::uint64_t replicate, const cuda::TrialDraw& to) {
                draw_of(model)(replicate, to);
                if (replicate == 2) to.left[1] = entry;
            },
            nullptr);
    };
    for (const double entry :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e200}) {
        const auto found = with_entry(entry);
        EXPECT_EQ(found[2].status,
                  std::isfinite(entry) ? cuda::TrialStatus::for_the_host : cuda::TrialStatus::not_finite)
            << entry;
        for (const std::size_t t : {0U, 1U, 3U}) EXPECT_EQ(numbers(found[t]), numbers(unmodified[t])) << t;
    }
}

TEST(DeviceTrials, UnsupportedPlansHaveAReasonAndAreRejected) {
    cuda::TrialPlan plan = small_plan(small_model(), estimators::Precision::float64);
    EXPECT_EQ(plan.unsupported_reason(), "");
    plan.rows = 257;
    EXPECT_NE(plan.unsupported_reason().find("257 x 10"), std::string::npos);
    const auto device = cuda::emulated_trials(plenty, plenty);
    EXPECT_THROW((void)device->run(plan, 0, 1, {}, nullptr), Error);
    plan.rows = 256;
    EXPECT_EQ(plan.unsupported_reason(), "");
    plan.row_roots[4] = 0.0;
    EXPECT_NE(plan.unsupported_reason(), "");
}

/// An emulated machine that plants a defect in the output of one kernel.
enum class PlantedDefect { none, normals, samples, values, vectors, shrinkage, rotation, bytes, products, errors };
class DefectiveMachine : public EmulatedMachine {
public:
    explicit DefectiveMachine(PlantedDefect defect) : EmulatedMachine(0, plenty), defect_(defect) {}
    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        EmulatedMachine::launch(kernel, blocks);
        plant(kernel);
    }

private:
    template <class Kernel>
    void plant(const Kernel&) const {}
    void plant(const stream::FillNormals<double>& kernel) const {
        if (defect_ == PlantedDefect::normals) kernel.out[5] = std::nextafter(kernel.out[5], 9.0);
    }
    void plant(const sim::SpikedBlocks<double>& kernel) const {
        if (defect_ == PlantedDefect::samples) kernel.observed[5] += 1e-9;
    }
    template <class Real>
    void plant(const estimators::cuda::SingularValues<Real>& kernel) const {
        if (defect_ == PlantedDefect::values) kernel.batch.values[1] *= 1.0 + 1e-5;
    }
    template <class Real, unsigned slots>
    void plant(const estimators::cuda::BackTransform<Real, slots>& kernel) const {
        if (defect_ == PlantedDefect::vectors) kernel.batch.left_vectors[3] += Real{1e-4F};
    }
    void plant(const estimators::cuda::ShrinkBlocks& kernel) const {
        if (defect_ == PlantedDefect::shrinkage) kernel.shrunk[0] *= 1.0 + 1e-8;
    }
    void plant(const estimators::cuda::TurnByHadamard<float>& kernel) const {
        if (defect_ == PlantedDefect::rotation && !kernel.back) kernel.to[7] = std::nextafter(kernel.to[7], 9.0F);
    }
    void plant(const estimators::cuda::PackCells& kernel) const {
        if (defect_ == PlantedDefect::bytes) kernel.bytes[2 * kernel.rows] ^= 1U;
    }
    template <class Entry>
    void plant(const estimators::cuda::PairSums<Entry>& kernel) const {
        if (defect_ == PlantedDefect::products) kernel.sums[0].renormalised += 1.0;
    }
    template <class Real>
    void plant(const estimators::cuda::SquaredErrors<Real>& kernel) const {
        if (defect_ == PlantedDefect::errors) kernel.errors[0] *= 1.001;
    }

    PlantedDefect defect_;
};

TEST(ParityControl, APlantedDefectFailsItsCheckAndNoEarlierOne) {
    const std::vector<std::string> names = {"normals",  "samples",         "values",         "vectors",    "eOptShrink",
                                            "rotation", "quantizer bytes", "inner products", "whole trial"};
    for (int defect = 0; defect <= 9; ++defect) {
        cuda::TrialBatch<DefectiveMachine> device(static_cast<PlantedDefect>(defect));
        const auto checks = check_parity(device, 1300);
        ASSERT_EQ(checks.size(), names.size());
        for (int c = 0; c < 9; ++c) {
            const auto& check = checks[static_cast<std::size_t>(c)];
            EXPECT_EQ(check.name, names[static_cast<std::size_t>(c)]);
            if (defect == 0 || c < defect - 1) {
                EXPECT_TRUE(check.passed) << "defect " << defect << ": " << check.name << " " << check.detail;
            }
            if (c == defect - 1) {
                EXPECT_FALSE(check.passed) << check.name << " " << check.detail;
            }
        }
    }
}

}  // namespace
}  // namespace spiked::validation
