#include "estimators/cuda/hadamard.hpp"
#include "theory/base/cuda/device_launch.cuh"

namespace spiked::cuda {
using namespace spiked::estimators::cuda;
template void DeviceExecutor::launch(const TurnByHadamard<float>&, unsigned) const;
template void DeviceExecutor::launch(const TurnByHadamard<double>&, unsigned) const;
}  // namespace spiked::cuda
