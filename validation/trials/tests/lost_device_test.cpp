#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>

#include "core/device/emulated_machine.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "estimators/compressors/compressor.hpp"
#include "validation/engine/engine.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/store/open_store.hpp"
#include "validation/store/store.hpp"
#include "validation/study/study.hpp"
#include "validation/trials/bench/device_bench.hpp"
#include "validation/trials/cuda/trial_batch.hpp"
#include "validation/trials/device_trials.hpp"
#include "validation/trials/tests/small_trials.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::DeviceFailure;
using spiked::cuda::EmulatedMachine;
using spiked::cuda::InjectedFailure;

std::unique_ptr<cuda::TrialDevice> device_with(const std::shared_ptr<InjectedFailure>& failure) {
    return std::make_unique<cuda::TrialBatch<EmulatedMachine>>(0, plenty, plenty, failure);
}

/// A plan with all parts of a trial: a low-rank part, a rotation by a matrix, a sketch.
cuda::TrialPlan whole_plan(const sim::SpikedModel& model) {
    auto plan = small_plan(model, estimators::Precision::float32);
    const estimators::QuantizerOptions options{.seed = device_seed};
    const auto method = estimators::parse_method("eoptshrink+tq-prod");
    plan.codecs.push_back(trial_codec(method.quantizer, options, {12, 10}, 2));
    plan.codecs.back().low_rank = low_rank_part(method, options, {12, 10});
    plan.rotation = drawn_rotation(options);
    return plan;
}

TEST(DeviceFailures, EveryOperationMayFailAndTheNextRunIsAsIfNothingHadHappened) {
    const sim::SpikedModel model = small_model();
    const auto plan = whole_plan(model);
    const auto failure = std::make_shared<InjectedFailure>();
    failure->after = std::numeric_limits<std::size_t>::max();
    const auto device = device_with(failure);
    const auto expected = device->run(plan, 0, 1, draw_of(model), nullptr);
    const std::size_t operations = failure->operations;
    ASSERT_GT(operations, 30U);
    for (std::size_t after = 0; after < operations; ++after) {
        *failure = {.after = after, .lasts = false};
        try {
            (void)device->run(plan, 0, 1, draw_of(model), nullptr);
            ADD_FAILURE() << "operation " << after << " failed in silence";
        } catch (const DeviceFailure& lost) {
            EXPECT_FALSE(lost.out_of_memory());
        }
        if (after % 8 != 0) continue;
        const auto again = device->run(plan, 0, 1, draw_of(model), nullptr);
        ASSERT_EQ(numbers(again[0]), numbers(expected[0])) << after;
        ASSERT_EQ(again[0].codes[0].error, expected[0].codes[0].error) << after;
    }
}

TEST(DeviceFailures, AFullDeviceHalvesTheBatchWhereItAllocates) {
    const sim::SpikedModel model = small_model();
    const auto plan = whole_plan(model);
    const auto expected = cuda::emulated_trials(plenty, plenty)->run(plan, 0, 4, draw_of(model), nullptr);
    for (std::size_t after = 0; after < 4; ++after) {
        const auto device = device_with(
            std::make_shared<InjectedFailure>(InjectedFailure{.after = after, .lasts = false, .of_memory = true}));
        if (after < 2) {  // pinned host memory, then memory of the device
            const auto found = device->run(plan, 0, 4, draw_of(model), nullptr);
            EXPECT_EQ(device->chunk(), 2U);
            for (std::size_t t = 0; t < 4; ++t) EXPECT_EQ(numbers(found[t]), numbers(expected[t]));
        } else {
            EXPECT_THROW((void)device->run(plan, 0, 4, draw_of(model), nullptr), DeviceFailure);
        }
    }
}

/// Slots of devices of which some fail, as told, and what they report.
struct FailingSlots {
    std::vector<std::shared_ptr<InjectedFailure>> failures;  ///< of each device; null: it does not fail
    std::vector<std::string> reports = {};

    [[nodiscard]] spiked::cuda::Device device(bool or_cpu) {
        spiked::cuda::Device device{.backend = spiked::cuda::Backend::cuda, .or_cpu = or_cpu};
        for (std::size_t d = 0; d < failures.size(); ++d) device.numbers.push_back(static_cast<int>(d));
        device.report = [this](const std::string& text) { reports.push_back(text); };
        return device;
    }
    [[nodiscard]] TrialSlots::MakeDevice make() const {
        return [made = failures](spiked::cuda::Backend, int number, std::size_t) {
            return device_with(made[static_cast<std::size_t>(number)]);
        };
    }
};

std::shared_ptr<InjectedFailure> fails_after(std::size_t operations, bool of_memory = false) {
    return std::make_shared<InjectedFailure>(InjectedFailure{.after = operations, .of_memory = of_memory});
}

TEST(DeviceFailures, SlotsNameTheDeviceAndSayWhatToDo) {
    const sim::SpikedModel model = small_model();
    const auto plan = whole_plan(model);
    for (const bool of_memory : {false, true}) {
        FailingSlots failing{{fails_after(of_memory ? 0 : 9, of_memory)}};
        TrialSlots slots(failing.device(false), 1, failing.make());
        for (int run = 0; run < 2; ++run) {
            try {
                (void)slots.run(plan, 0, 4, draw_of(model));
                ADD_FAILURE() << "a lost device stays lost";
            } catch (const DevicesLost& error) {
                const std::string text = error.what();
                EXPECT_EQ(error.kind(), of_memory ? ErrorKind::memory : ErrorKind::internal);
                EXPECT_FALSE(error.cpu_may_go_on());
                EXPECT_EQ(text.find("cuda:0: "), 0U) << text;
                EXPECT_NE(text.find(of_memory ? "(out of memory), also for half as many blocks: go on with another"
                                              : "failed on the GPU (unspecified launch failure): go on with another"),
                          std::string::npos)
                    << text;
            }
            *failing.failures[0] = {.after = std::numeric_limits<std::size_t>::max()};
        }
        EXPECT_TRUE(failing.reports.empty()) << "no device is left to speak of";
    }
}

TEST(DeviceFailures, OtherDevicesTakeTheBatchesOfALostOneWithTheSameBits) {
    const sim::SpikedModel model = small_model();
    const auto plan = whole_plan(model);
    constexpr std::size_t batches = 8;
    const auto expected = cuda::emulated_trials(plenty, plenty)->run(plan, 0, batches, draw_of(model), nullptr);
    for (const std::size_t after : {0U, 9U, 100U}) {
        // The first device is lost within a batch, the last has no memory for its second slot; one is sound.
        FailingSlots failing{{fails_after(after), nullptr, fails_after(40, true)}};
        TrialSlots slots(failing.device(false), 6, failing.make());
        std::vector<cuda::TrialResult> found(batches);
        for_each_parallel(batches, 6, [&](std::size_t b) { found[b] = slots.run(plan, b, 1, draw_of(model)).front(); });
        for (std::size_t b = 0; b < batches; ++b) {
            EXPECT_EQ(numbers(found[b]), numbers(expected[b])) << after << " " << b;
            EXPECT_EQ(found[b].codes[0].error, expected[b].codes[0].error) << after << " " << b;
        }
        const auto lost = std::count_if(failing.reports.begin(), failing.reports.end(), [](const std::string& text) {
            return text.find("cuda:0: ") == 0 && text.find(": the other devices take its batches") != std::string::npos;
        });
        EXPECT_EQ(lost, failing.failures[0]->operations > after ? 1 : 0) << after;
        if (after < 100) {
            EXPECT_EQ(lost, 1);
        }
        for (const std::string& text : failing.reports) EXPECT_EQ(text.find("cuda:1"), std::string::npos) << text;
    }
}

TEST(DeviceFailures, ThreadsThatWaitForASlotLearnThatNoneIsLeft) {
    const sim::SpikedModel model = small_model();
    const auto plan = whole_plan(model);
    FailingSlots failing{{fails_after(60), fails_after(30)}};
    TrialSlots slots(failing.device(true), 2, failing.make());
    std::atomic<std::size_t> done = 0;
    std::atomic<std::size_t> rejected = 0;
    for_each_parallel(8, 8, [&](std::size_t b) {
        try {
            (void)slots.run(plan, b, 1, draw_of(model));
            ++done;
        } catch (const DevicesLost& lost) {
            EXPECT_TRUE(lost.cpu_may_go_on());
            EXPECT_EQ(lost.reason().find("cuda:"), 0U) << lost.reason();
            ++rejected;
        }
    });
    EXPECT_EQ(done + rejected, 8U);
    EXPECT_GE(rejected, 6U) << "a trial takes more than 30 operations";
    EXPECT_EQ(failing.reports.size(), 1U) << "only of the first that is lost";
}

/// Blocks that no device codes any more are left to the CPU if `auto` chose the device, else there is an error.
TEST(DeviceFailures, ContainersGoOnOnTheCpuOnlyIfTheUserLeftTheChoice) {
    const auto method = estimators::parse_method("tq-mse");
    const estimators::QuantizerOptions options{.rotation = estimators::RotationKind::rht2, .seed = device_seed};
    const codec::BlockCode code{method, options, {4, 8}, 3};
    const codec::FillRows fill = [](std::size_t b, float* to) {
        for (std::size_t i = 0; i < 32; ++i) to[i] = static_cast<float>(i + b);
    };
    const std::vector<std::uint64_t> rotations = {1, 2};
    for (const bool or_cpu : {false, true}) {
        FailingSlots failing{{fails_after(20), fails_after(3)}};
        DeviceBlockCoder coder(failing.device(or_cpu), 1, failing.make());
        std::size_t on_device = 0;
        std::size_t left = 0;
        std::size_t errors = 0;
        for (int call = 0; call < 6; ++call) {
            try {
                for (const auto& block : coder.code(code, rotations, fill)) ++(block ? on_device : left);
            } catch (const DevicesLost&) {
                ++errors;
            }
        }
        EXPECT_GT(on_device, 0U);
        EXPECT_EQ(left > 0, or_cpu);
        EXPECT_EQ(errors > 0, !or_cpu);
        ASSERT_EQ(failing.reports.size(), or_cpu ? 2U : 1U);
        EXPECT_NE(failing.reports.front().find("the other devices take its batches"), std::string::npos);
        if (or_cpu) {
            EXPECT_NE(failing.reports.back().find("the CPU goes on"), std::string::npos);
        }
    }
}

/// The numbers of a store, by cell and replicate.
std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> values_of(Database& store) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> found;
    Statement values(store,
                     "SELECT cell_id, rep, v FROM value WHERE v IS NOT NULL ORDER BY cell_id, rep, method_id, "
                     "metric_id, k");
    while (values.step()) found[{values.integer(0), values.integer(1)}].push_back(values.real(2));
    return found;
}

TEST(DeviceFailures, ABenchmarkNamesTheDevice) {
    for (const auto& [full, kind] : {std::pair{true, ErrorKind::memory}, std::pair{false, ErrorKind::internal}}) {
        try {
            on_device({spiked::cuda::Backend::cuda, {3}},
                      [full = full] { throw DeviceFailure("allocating memory", "the reason", full); });
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), kind);
            EXPECT_EQ(std::string(error.what()), "cuda:3: allocating memory failed on the GPU (the reason)");
        }
    }
}

/// A run on a device that is lost before it computes the second of two cells.
TEST(DeviceFailures, AStudyOfAutoGoesOnOnTheCpuInAStoreThatSaysSo) {
    const auto study = [] {
        return parse_study(
                   "spiked = 1\n[study]\nname = \"x\"\nseed = \"0x5eed\"\n[model]\nkind = \"spiked\"\nn = 12\n"
                   "d = 16\nsignal = { strength = [8.0] }\n[sweep]\nn = [12, 10]\n[[estimator]]\nname = "
                   "\"eoptshrink\"\n[run]\nreps = { min = 6, batch = 2 }\n",
                   "x")
            .experiment;
    };
    const auto run = [](const Experiment& experiment, const std::string& path) {
        Store store(path, experiment, "test", 1, Json::object());
        EXPECT_EQ(run_experiment(experiment, store, {.threads = 1}), RunOutcome::complete);
        return values_of(store.database());
    };
    std::vector<std::string> notes;
    const auto on_cpu = run(study(), ":memory:");
    Experiment moved = study();
    ASSERT_TRUE(moved.move_to({spiked::cuda::Backend::emulated, {0}}, 1, notes));
    moved.backend = "emulated";
    const auto on_device = run(moved, ":memory:");

    const std::string path = scratch_path("lost");
    Experiment losing = moved;
    losing.worker = [&](std::size_t cell, ReplicateRange range) {
        if (cell == 1) throw DevicesLost(ErrorKind::internal, "cuda:0: it is gone", true);
        return moved.worker(cell, range);
    };
    EXPECT_THROW((void)run(losing, path), DevicesLost);
    Experiment again = moved.on_cpu();
    const auto together = run(again, path);
    ASSERT_EQ(together.size(), 12U);
    std::size_t kept = 0;
    for (const auto& [where, values] : together) {
        ASSERT_NE(on_device.at(where), on_cpu.at(where)) << "the last digits tell the two apart";
        const bool by_device = values == on_device.at(where);
        EXPECT_TRUE(by_device || values == on_cpu.at(where)) << where.first << " " << where.second;
        EXPECT_FALSE(by_device && where.first == 2) << where.second;
        kept += by_device ? 1 : 0;
    }
    EXPECT_GE(kept, 2U) << "the batches that were committed stay";
    EXPECT_EQ(stored_backend(path), "mixed");
    // Without what allows it, a store of two backends is rejected.
    again.mixed = false;
    const std::string other = scratch_path("rejected");
    EXPECT_THROW((void)run(losing, other), DevicesLost);
    EXPECT_THROW((void)run(again, other), Error);
}

}  // namespace
}  // namespace spiked::validation
