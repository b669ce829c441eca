#include "estimators/cuda/hadamard.hpp"
#include "estimators/cuda/matrix_rotation.hpp"
#include "theory/base/cuda/device_launch.cuh"

namespace spiked::cuda {
using namespace spiked::estimators::cuda;
template void DeviceExecutor::launch(const TurnByHadamard<float>&, unsigned) const;
template void DeviceExecutor::launch(const TurnByHadamard<double>&, unsigned) const;
template void DeviceExecutor::launch(const TurnByMatrix<float>&, unsigned) const;
template void DeviceExecutor::launch(const TurnByMatrix<double>&, unsigned) const;
}  // namespace spiked::cuda
