#include "core/device/device_machine.cuh"
#include "validation/trials/cuda/batch_passes.hpp"
#include "validation/trials/cuda/gpu_batches.hpp"
#include "validation/trials/cuda/trial_batch.hpp"

// All are in one file, because nvcc compiles a kernel again in every file that launches it.
namespace spiked::validation::cuda {

using Machine = spiked::cuda::DeviceMachine;

std::unique_ptr<TrialDevice> gpu_trials(int number, std::size_t memory) {
    return std::make_unique<TrialBatch<Machine>>(number, memory);
}

std::unique_ptr<DevicePass> gpu_pass(int number, std::size_t memory, const BlocksToDecompose& blocks, std::size_t count,
                                     DecompositionPart part) {
    return decomposition_pass_on<Machine>(number, memory, blocks, count, part);
}

std::unique_ptr<DevicePass> gpu_pass(int number, std::size_t memory, const RowCoding& coding, std::size_t count,
                                     const FillBlock& fill, CodingPart part) {
    return std::make_unique<CodingPass<Machine>>(number, memory, coding, count, fill, part);
}

}  // namespace spiked::validation::cuda
