#pragma once
#include "estimators/cuda/device_decomposition.hpp"

namespace spiked::estimators::cuda {

/// Decomposes by BatchDecomposition the blocks that the kernels left to the host, and puts what is found in their
/// places; their status is `fine` then. Returns how many these were. Throws input_error as BatchDecomposition does.
template <class Real>
std::size_t finish_on_host(const BatchSize& size, std::span<const Real> blocks, const DecomposedBlocks<Real>& results);

extern template std::size_t finish_on_host(const BatchSize&, std::span<const float>, const DecomposedBlocks<float>&);
extern template std::size_t finish_on_host(const BatchSize&, std::span<const double>, const DecomposedBlocks<double>&);

}  // namespace spiked::estimators::cuda
