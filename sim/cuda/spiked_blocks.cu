#include "sim/cuda/spiked_blocks.hpp"

#include "theory/base/cuda/device_launch.cuh"

template void spiked::cuda::DeviceExecutor::launch(const spiked::sim::SpikedBlocks<float>&, unsigned) const;
template void spiked::cuda::DeviceExecutor::launch(const spiked::sim::SpikedBlocks<double>&, unsigned) const;
