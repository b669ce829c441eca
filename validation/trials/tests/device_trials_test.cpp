#include "validation/trials/device_trials.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/device/device_failure.hpp"
#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "validation/trials/tests/small_trials.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::DeviceFailure;

TEST(DeviceTrials, DoNotDependOnTheBatchSize) {
    const sim::SpikedModel model = small_model();
    for (const auto precision : {estimators::Precision::float64, estimators::Precision::float32}) {
        const auto plan = small_plan(model, precision);
        const auto at_once = cuda::emulated_trials(plenty, plenty);
        const auto in_one_batch = at_once->run(plan, 3, 9, draw_of(model), nullptr);
        ASSERT_EQ(in_one_batch.size(), 9U);
        EXPECT_EQ(at_once->chunk(), 9U);
        const auto little = cuda::emulated_trials(std::size_t{60} << 10, plenty);
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
    // Estimators that see only singular values run on the host between kernels; others and transforms do not.
    for (const char* name : {"eoptshrink+tq-mse", "eoptshrink:edgefit+tq-prod", "svd:1+tq-mse", "gd-hard+eden",
                             "optshrink:2+kivi:group=5", "unrope+eoptshrink+tq-mse"})
        EXPECT_EQ(unsupported_reason(name), "") << name;
    for (const char* name : {"whiten+gd-shrink+tq-mse", "tw-test:null=signflip+tq-mse", "mean+eoptshrink+tq-mse",
                             "mean+tq-mse", "eoptshrink+rabitq", "svd:11+tq-mse"})
        EXPECT_NE(unsupported_reason(name), "") << name;
    EXPECT_NE(unsupported_reason("svd:1+tq-mse", {.open_loop = true}), "");
    EXPECT_NE(coding_unsupported_reason(estimators::parse_method("eoptshrink+tq-mse"), {}, {257, 10}, 2), "");
}

/// Blocks with three signals, and some that kernels leave to the CPU.
std::vector<arma::mat> blocks_with_signals(estimators::Shape shape) {
    sim::SpikedModel model{sim::Covariance::ar1(0.3, shape.rows), sim::Covariance::exponential(1.0, shape.columns), {}};
    model.strengths = {SignalStrength{12.0}, SignalStrength{8.0}, SignalStrength{5.0}};
    std::vector<arma::mat> blocks;
    for (std::uint64_t b = 0; b < 6; ++b) blocks.push_back(sim::sample(model, device_seed, "low rank", b).observed);
    blocks[1].row(3).zeros();
    blocks[2].col(shape.columns - 1).zeros();
    blocks[3] *= 1e-9;
    blocks[4](2, 1) = std::numeric_limits<double>::quiet_NaN();
    return blocks;
}

/// Blocks of two heads, each with its own rotation, are coded together. The bytes are decoded by the compressor of the
/// CPU, which has no code in common with the kernels.
void expect_coding_as_on_the_cpu(const char* name, estimators::Shape shape, estimators::RotationKind rotation,
                                 const std::vector<std::size_t>& coded) {
    SCOPED_TRACE(testing::Message() << name << ", " << shape.rows << " x " << shape.columns);
    const auto method = estimators::parse_method(name);
    estimators::QuantizerOptions options{.rotation = rotation, .seed = device_seed};
    const codec::BlockCode code{method, options, shape, 3};
    DeviceBlockCoder coder({spiked::cuda::Backend::emulated, {0}}, 1);
    ASSERT_EQ(coder.unsupported_reason(code), "");
    const auto blocks = blocks_with_signals(shape);
    const std::vector<std::uint64_t> rotations = {9, 9, 4, 4, 9, (std::uint64_t{1} << 40) + 4};
    const auto found = coder.code(code, rotations, [&](std::size_t b, float* to) {
        std::transform(blocks[b].begin(), blocks[b].end(), to, [](double entry) { return static_cast<float>(entry); });
    });
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const bool expected_here = std::find(coded.begin(), coded.end(), b) != coded.end();
        ASSERT_EQ(found[b].has_value(), expected_here) << b;
        if (!found[b]) continue;
        options.rotation_index = rotations[b];
        const estimators::Compressor cpu(method, shape.columns, 3, options);
        estimators::AnalysedBlock block(blocks[b]);
        const auto expected = cpu.encode(block);
        EXPECT_EQ(expected.rank > 0, method.spectral.has_value());
        EXPECT_EQ(found[b]->rank, expected.rank);
        EXPECT_DOUBLE_EQ(found[b]->paper_bits, cpu.paper_bits(expected.rank, shape.rows));
        EXPECT_EQ(found[b]->encoded.bytes.size(), expected.encoded.bytes.size());
        for (const auto& item : EnumNames<estimators::Item>::table)
            EXPECT_EQ(found[b]->encoded.ledger.bits(item.value), expected.encoded.ledger.bits(item.value)) << item.name;
        const auto error = [&](const std::vector<std::uint8_t>& bytes) {
            return arma::norm(cpu.decode(bytes, shape.rows) - blocks[b], "fro") / arma::norm(blocks[b], "fro");
        };
        // The signs of singular vectors are arbitrary, and with them the bits of the factors.
        EXPECT_NEAR(found[b]->relative_l2, error(found[b]->encoded.bytes), 1e-5);
        EXPECT_NEAR(error(found[b]->encoded.bytes) / error(expected.encoded.bytes), 1.0, 5e-3);
        EXPECT_GT(error(found[b]->encoded.bytes), 1e-3) << "control: the block is not kept whole";
        EXPECT_LT(error(found[b]->encoded.bytes), 0.4) << "control: the rotation is that of the block";
    }
}

TEST(DeviceTrialsReference, BlocksOfSeveralHeadsAreCodedTogether) {
    using estimators::RotationKind;
    for (const char* name : {"tq-mse", "tq-prod"}) {
        expect_coding_as_on_the_cpu(name, {16, 32}, RotationKind::haar, {0, 1, 2, 5});
        expect_coding_as_on_the_cpu(name, {40, 24}, RotationKind::fht_kac, {0, 1, 2, 5});
    }
}

TEST(DeviceTrialsReference, LowRankPartsAreCodedAsOnTheCpu) {
    using estimators::RotationKind;
    // Blocks 1 to 4 have a row or a column of zeros, are tiny, or hold NaN.
    expect_coding_as_on_the_cpu("eoptshrink:edgefit+tq-mse", {40, 24}, RotationKind::haar, {0, 5});
    expect_coding_as_on_the_cpu("eoptshrink:edgefit+tq-prod", {16, 32}, RotationKind::haar, {0, 5});
    expect_coding_as_on_the_cpu("svd:2+tq-prod", {40, 24}, RotationKind::fht_kac, {0, 5});
    expect_coding_as_on_the_cpu("gd-shrink+eden", {16, 32}, RotationKind::rht2, {0, 5});
    expect_coding_as_on_the_cpu("optshrink:1+kivi", {40, 24}, RotationKind::identity, {0, 5});
}

/// In trials every replicate has its own rotation, and the block is decomposed once for all methods.
TEST(DeviceTrialsReference, TrialsWithLowRankPartsAgreeWithTheCpu) {
    const sim::SpikedModel model = small_model();
    for (const auto precision : {estimators::Precision::float64, estimators::Precision::float32}) {
        auto plan = small_plan(model, precision);
        const char* const names[] = {"eoptshrink+tq-mse", "tq-mse", "svd:2+tq-prod"};
        const estimators::QuantizerOptions shared{.seed = device_seed};
        for (const char* name : names) {
            const auto method = estimators::parse_method(name);
            plan.codecs.push_back(trial_codec(method.quantizer, shared, {12, 10}, 2));
            plan.codecs.back().low_rank = low_rank_part(method, shared, {12, 10});
        }
        plan.rotation = drawn_rotation(shared);
        constexpr std::uint64_t first = 40;
        const auto device = cuda::emulated_trials(std::size_t{60} << 10, plenty);  // several chunks
        const auto found = device->run(plan, first, 6, draw_of(model), nullptr);
        ASSERT_LT(device->chunk(), 6U);
        for (std::uint64_t t = 0; t < 6; ++t)
            for (std::size_t c = 0; c < std::size(names); ++c) {
                SCOPED_TRACE(testing::Message() << names[c] << ", trial " << t);
                ASSERT_EQ(found[t].status, cuda::TrialStatus::fine);
                const arma::mat observed = sim::sample(model, device_seed, "device trials", first + t).observed;
                auto options = shared;
                options.rotation_index = first + t;
                const auto method = estimators::parse_method(names[c]);
                const estimators::Compressor cpu(method, 10, 2, options);
                estimators::AnalysedBlock block(observed, estimators::AnalysedBlock::EmptyLines::strip, precision);
                const auto expected = cpu.encode(block);
                const auto& code = found[t].codes[c];
                EXPECT_EQ(code.rank, expected.rank);
                EXPECT_EQ(code.rank, c == 0 ? found[t].estimates[0].rank : c == 1 ? 0U : 2U);
                estimators::Ledger ledger = ledger_of(method.quantizer, options, {12, 10}, 2);
                ledger += code.factors;
                EXPECT_EQ(ledger.total(), expected.encoded.ledger.total());
                EXPECT_EQ(ledger.total(), 8 * expected.encoded.bytes.size());
                const arma::mat decoded = cpu.decode(expected.encoded.bytes, 12);
                EXPECT_NEAR(code.error / arma::accu(arma::square(decoded - observed)), 1.0, 5e-3);
                EXPECT_NEAR(code.across / arma::dot(decoded, observed), 1.0, 1e-3);
            }
    }
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

}  // namespace
}  // namespace spiked::validation
