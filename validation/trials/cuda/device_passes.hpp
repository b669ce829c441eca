#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "validation/trials/cuda/trial_device.hpp"

/// Parts of a trial on a batch in device memory, to be run repeatedly by benchmarks.
namespace spiked::validation::cuda {

class DevicePass {
public:
    virtual ~DevicePass() = default;
    /// Processes the whole batch and waits until it is done. Throws spiked::cuda::DeviceFailure.
    virtual void run() = 0;
    /// Blocks of the batch: the requested number, or as many as fit in memory.
    [[nodiscard]] virtual std::size_t blocks() const = 0;
    /// Results of the different blocks, to check that the work was done. Throws postcondition_error if a block failed
    /// or if copies of a block have different results.
    [[nodiscard]] virtual std::vector<double> outcome() = 0;
};

/// Blocks that are repeated to fill a batch.
struct BlocksToDecompose {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::uint32_t vectors = 0;   ///< number of leading vectors of each side
    bool in_float = false;       ///< precision of the decomposition
    std::vector<double> blocks;  ///< column-major, one after the other
};
enum class DecompositionPart { bidiagonal, values, vectors };  ///< each includes the parts before it

/// Outcome: all singular values of each different block, descending; empty for `bidiagonal`. Throws postcondition_error
/// too if vectors are not singular vectors up to rounding.
[[nodiscard]] std::unique_ptr<DevicePass> decomposition_pass(spiked::cuda::Backend backend, int number,
                                                             std::size_t memory, const BlocksToDecompose& blocks,
                                                             std::size_t count, DecompositionPart part);

enum class CodingPart {
    encode,
    decode,
    encode_and_copy  ///< includes the copies of rows from, and bytes to, pinned host memory
};
/// Outcome: the relative squared error of the first block, decoded.
[[nodiscard]] std::unique_ptr<DevicePass> coding_pass(spiked::cuda::Backend backend, int number, std::size_t memory,
                                                      const RowCoding& coding, std::size_t count, const FillBlock& fill,
                                                      CodingPart part);

/// NVIDIA's libraries as a baseline for the kernels. They are opened on first use.
///   syev_gram   XsyevBatched with vectors on the Gram matrix (cuBLAS); in float the small values are inaccurate
///   gesvda      gesvdaStridedBatched: `vectors` leading values and vectors
enum class LibraryRoute { syev_gram, gesvda };
/// Why the libraries cannot be timed here; empty if they can. Blocks with more columns than rows are not supported.
[[nodiscard]] std::string library_unsupported_reason(spiked::cuda::Backend backend, const BlocksToDecompose& blocks);
[[nodiscard]] std::unique_ptr<DevicePass> library_pass(int number, const BlocksToDecompose& blocks, std::size_t count,
                                                       LibraryRoute route);

}  // namespace spiked::validation::cuda
