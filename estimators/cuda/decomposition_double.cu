#include "estimators/cuda/device_decomposition.cuh"

template class spiked::estimators::cuda::DeviceDecomposition<double>;
