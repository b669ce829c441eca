#include "estimators/cuda/turboquant.hpp"

#include "theory/base/cuda/device_launch.cuh"

namespace spiked::cuda {
using namespace spiked::estimators::cuda;
template void DeviceExecutor::launch(const ScaleRows&, unsigned) const;
template void DeviceExecutor::launch(const PackCells&, unsigned) const;
template void DeviceExecutor::launch(const UnpackLevels&, unsigned) const;
}  // namespace spiked::cuda
