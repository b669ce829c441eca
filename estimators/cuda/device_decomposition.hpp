#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "estimators/cuda/decomposition_batch.hpp"

namespace spiked::estimators::cuda {

/// Where decomposed blocks go, block after block; matrices column-major.
template <class Real>
struct DecomposedBlocks {
    std::span<BlockStatus> status;
    std::span<double> values;       ///< short side each, descending
    std::span<Real> long_vectors;   ///< long side x vectors: left of a tall block, right of a wide one
    std::span<Real> short_vectors;  ///< short side x vectors
};

/// BatchDecomposition on a GPU (kernels: decomposition_pipeline.hpp), with its accuracy. Blocks travel in pieces over
/// two streams, so that one piece is copied while the other is computed; device memory stays within `memory` bytes,
/// whatever the number of blocks, and half of that is tried where the device has less. Neither changes a number: what
/// is found for a block is the same in any batch.
///
/// Blocks that are not finite, or that the kernels leave to the host, are reported by their status and hold zeros.
/// Throws cuda::DeviceFailure.
template <class Real>
class DeviceDecomposition {
public:
    /// `size.count` is the number of blocks of a piece, at most. fits() of the sides must hold.
    DeviceDecomposition(int device, const BatchSize& size, std::size_t memory);
    ~DeviceDecomposition();
    DeviceDecomposition(DeviceDecomposition&&) noexcept;
    DeviceDecomposition& operator=(DeviceDecomposition&&) noexcept;

    void decompose(std::span<const Real> blocks, const DecomposedBlocks<Real>& to);
    /// Blocks of a piece.
    [[nodiscard]] std::size_t piece() const;

private:
    class Work;
    std::unique_ptr<Work> work_;
};

}  // namespace spiked::estimators::cuda
