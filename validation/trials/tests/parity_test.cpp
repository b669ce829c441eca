#include "validation/trials/parity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/device/emulated_machine.hpp"
#include "validation/trials/cuda/batch_passes.hpp"
#include "validation/trials/cuda/trial_batch.hpp"
#include "validation/trials/tests/small_trials.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::EmulatedMachine;

/// An emulated machine that plants a defect in the output of one kernel.
enum class DeviceDefect {
    none,
    normals,
    samples,
    values,
    vectors,
    shrinkage,
    rotation,
    bytes,
    products,
    errors,
    entries,
    low_rank,
    vectors_of_all,  ///< the same in every block, so that copies agree
    coded
};
class DefectiveMachine : public EmulatedMachine {
public:
    explicit DefectiveMachine(DeviceDefect defect) : EmulatedMachine(0, plenty), defect_(defect) {}
    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        EmulatedMachine::launch(kernel, blocks);
        plant(kernel);
    }

private:
    template <class Kernel>
    void plant(const Kernel&) const {}
    void plant(const stream::FillNormals<double>& kernel) const {
        if (defect_ == DeviceDefect::normals) kernel.out[5] = std::nextafter(kernel.out[5], 9.0);
    }
    void plant(const sim::SpikedBlocks& kernel) const { plant(kernel.model); }
    void plant(const sim::DrawnBlocks& kernel) const { plant(kernel.model); }
    void plant(const sim::SpikedEntries& samples) const {
        if (defect_ == DeviceDefect::samples) samples.observed[5] += 1e-9;
        if (defect_ == DeviceDefect::entries && samples.observed_as_float != nullptr)
            samples.observed_as_float[5] = std::numeric_limits<float>::quiet_NaN();
    }
    template <class Real>
    void plant(const estimators::cuda::SingularValues<Real>& kernel) const {
        if (defect_ == DeviceDefect::values) kernel.batch.values[1] *= 1.0 + 1e-5;
    }
    template <class Real, unsigned slots>
    void plant(const estimators::cuda::BackTransform<Real, slots>& kernel) const {
        const auto& size = kernel.batch.size;
        const std::uint32_t wrong = defect_ == DeviceDefect::vectors          ? 1
                                    : defect_ == DeviceDefect::vectors_of_all ? size.count
                                                                              : 0;
        for (std::size_t b = 0; b < wrong; ++b)
            kernel.batch.left_vectors[b * size.vectors * size.long_side + 3] += Real{1e-4F};
    }
    void plant(const estimators::cuda::ShrinkBlocks& kernel) const {
        if (defect_ == DeviceDefect::shrinkage) kernel.shrunk[0] *= 1.0 + 1e-8;
    }
    void plant(const estimators::cuda::TurnByHadamard<float>& kernel) const {
        if (defect_ == DeviceDefect::rotation && !kernel.back) kernel.to[7] = std::nextafter(kernel.to[7], 9.0F);
    }
    void plant(const estimators::cuda::PackCells& kernel) const {
        if (defect_ == DeviceDefect::bytes) kernel.bytes[2 * kernel.rows] ^= 1U;
    }
    void plant(const estimators::cuda::SplitLowRank<float>& kernel) const {
        if (defect_ == DeviceDefect::low_rank && kernel.residual != kernel.blocks_in) kernel.residual[3] += 0.1F;
    }
    void plant(const estimators::cuda::SquaredErrors<float>& kernel) const {
        if (defect_ == DeviceDefect::coded) kernel.sums.errors[0] = 2.0 * kernel.sums.energies[0];
    }
    template <class Entry>
    void plant(const estimators::cuda::PairSums<Entry>& kernel) const {
        if (defect_ == DeviceDefect::products) kernel.sums[0].renormalised += 1.0;
    }
    template <class Real>
    void plant(const estimators::cuda::LowRankErrors<Real>& kernel) const {
        if (defect_ == DeviceDefect::errors) kernel.sums.errors[0] *= 1.001;
    }

    DeviceDefect defect_;
};

TEST(ParityControl, APlantedDefectFailsItsCheckAndNoEarlierOne) {
    const std::vector<std::string> names = {"normals",  "samples",         "values",         "vectors",    "eOptShrink",
                                            "rotation", "quantizer bytes", "inner products", "whole trial"};
    for (int defect = 0; defect <= 9; ++defect) {
        cuda::TrialBatch<DefectiveMachine> device(static_cast<DeviceDefect>(defect));
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

TEST(ParityControl, ADefectOfALowRankPartFailsTheCheckOfTheRotatedRest) {
    cuda::TrialBatch<DefectiveMachine> device(DeviceDefect::low_rank);
    for (const auto& check : check_parity(device, 1300)) {
        if (check.name == "rotation") {
            EXPECT_FALSE(check.passed) << check.detail;
            break;
        }
        EXPECT_TRUE(check.passed) << check.name << " " << check.detail;
    }
}

/// The machine that the next pass is made on, which cannot be told more.
class NextMachine : public DefectiveMachine {
public:
    static inline DeviceDefect defect = DeviceDefect::none;
    NextMachine(int, std::size_t) : DefectiveMachine(defect) {}
};

/// Decomposes 4 blocks of each of the smaller shapes, two of them twice, and draws 6 matrices, of which it codes 2.
TEST(ParityControl, BadBlocksUnderLoadFailTheirChecks) {
    const auto decompose = [](const cuda::BlocksToDecompose& blocks, std::size_t count) {
        return cuda::decomposition_pass_on<NextMachine>(0, plenty, blocks, count, cuda::DecompositionPart::vectors);
    };
    const auto checks_with = [&](DeviceDefect defect) {
        NextMachine::defect = defect;
        cuda::TrialBatch<DefectiveMachine> trials(defect);
        const auto checks = check_under_load({decompose, trials}, 4, 16, 4096);
        EXPECT_EQ(checks.size(), 3U);
        return checks;
    };
    for (const auto& check : checks_with(DeviceDefect::none)) EXPECT_TRUE(check.passed) << check.detail;
    for (const auto& [defect, words] : {std::pair{DeviceDefect::values, "singular values"},
                                        {DeviceDefect::vectors, "left vectors"},
                                        {DeviceDefect::vectors_of_all, "vectors of block 0 are"}}) {
        const auto checks = checks_with(defect);
        for (const std::size_t copies : {0U, 1U}) {
            EXPECT_FALSE(checks[copies].passed);
            EXPECT_NE(checks[copies].detail.find(words), std::string::npos) << checks[copies].detail;
        }
    }
    const auto checks = checks_with(DeviceDefect::entries);
    EXPECT_FALSE(checks[2].passed) << checks[2].detail;
    EXPECT_NE(checks[2].detail.find("4 of 6 computed, 0 left to the CPU (allowed 1 in 10000), 2 failed"),
              std::string::npos)
        << checks[2].detail;
    EXPECT_FALSE(checks_with(DeviceDefect::coded)[2].passed) << "a code that loses more than the block holds";
    // A check of no matrix is none.
    cuda::TrialBatch<DefectiveMachine> trials(DeviceDefect::none);
    EXPECT_FALSE(check_under_load({decompose, trials}, 4, 16, 1024)[2].passed);
}

}  // namespace
}  // namespace spiked::validation
