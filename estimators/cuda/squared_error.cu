#include "estimators/cuda/squared_error.hpp"

#include "theory/base/cuda/device_launch.cuh"

namespace spiked::cuda {
using namespace spiked::estimators::cuda;
template void DeviceExecutor::launch(const SquaredErrors<float>&, unsigned) const;
template void DeviceExecutor::launch(const SquaredErrors<double>&, unsigned) const;
}  // namespace spiked::cuda
