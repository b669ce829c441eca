#include "estimators/cuda/shrinkage.hpp"

#include "theory/base/cuda/device_launch.cuh"

template void spiked::cuda::DeviceExecutor::launch(const spiked::estimators::cuda::ShrinkBlocks&, unsigned) const;
