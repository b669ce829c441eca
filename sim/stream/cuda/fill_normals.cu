#include "sim/stream/cuda/fill_normals.hpp"

#include "theory/base/cuda/device_launch.cuh"

template void spiked::cuda::DeviceExecutor::launch(const spiked::stream::FillNormals<float>&, unsigned) const;
template void spiked::cuda::DeviceExecutor::launch(const spiked::stream::FillNormals<double>&, unsigned) const;
