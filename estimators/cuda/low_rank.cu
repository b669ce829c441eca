#include "estimators/cuda/low_rank.hpp"

#include "theory/base/cuda/device_launch.cuh"

namespace spiked::cuda {
using namespace spiked::estimators::cuda;
template void DeviceExecutor::launch(const SplitLowRank<float>&, unsigned) const;
template void DeviceExecutor::launch(const SplitLowRank<double>&, unsigned) const;
}  // namespace spiked::cuda
