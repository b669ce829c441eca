#include "theory/base/cuda/device_machine.cuh"
#include "validation/cuda/trial_batch.hpp"

namespace spiked::validation::cuda {

std::unique_ptr<TrialDevice> gpu_trials(int number, std::size_t memory) {
    return std::make_unique<TrialBatch<spiked::cuda::DeviceMachine>>(number, memory);
}

}  // namespace spiked::validation::cuda
