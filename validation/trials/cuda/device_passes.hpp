#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "validation/trials/cuda/trial_device.hpp"

/// Parts of a trial on a batch that lies on a device, done over and over: what benchmarks time.
namespace spiked::validation::cuda {

class DevicePass {
public:
    virtual ~DevicePass() = default;
    /// Does it for the whole batch and waits. Throws spiked::cuda::DeviceFailure.
    virtual void run() = 0;
    /// Blocks of the batch: those asked for, or as many as there is memory for.
    [[nodiscard]] virtual std::size_t blocks() const = 0;
    /// Numbers of the first block that say whether the work was done. Throws bug where a block failed, or where one and
    /// its copies found different numbers.
    [[nodiscard]] virtual std::vector<double> outcome() = 0;
};

/// Blocks that repeat to fill a batch.
struct BlocksToDecompose {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::uint32_t vectors = 0;   ///< leading ones of each side
    bool in_float = false;       ///< what they are decomposed in
    std::vector<double> blocks;  ///< column-major, one after the other
};
enum class DecompositionPart { bidiagonal, values, vectors };  ///< each with those before it

/// Outcome: all singular values, descending; none of `bidiagonal`.
[[nodiscard]] std::unique_ptr<DevicePass> decomposition_pass(spiked::cuda::Backend backend, int number,
                                                             std::size_t memory, const BlocksToDecompose& blocks,
                                                             std::size_t count, DecompositionPart part);

enum class CodingPart {
    encode,
    decode,
    encode_and_copy  ///< rows from the host's pinned memory, bytes back into it
};
/// Outcome: the relative squared error of the decoded block.
[[nodiscard]] std::unique_ptr<DevicePass> coding_pass(spiked::cuda::Backend backend, int number, std::size_t memory,
                                                      const RowCoding& coding, std::size_t count, const FillBlock& fill,
                                                      CodingPart part);

/// NVIDIA's libraries in the same place: what the kernels are measured against. They are opened when first asked for.
///   syev_gram   XsyevBatched with vectors on the Gram matrix (cuBLAS), which in float loses the small values
///   gesvda      gesvdaStridedBatched: `vectors` leading values and vectors
enum class LibraryRoute { syev_gram, gesvda };
/// Why it cannot be timed here; empty when it can. Blocks with more columns than rows are not.
[[nodiscard]] std::string library_unsupported_reason(spiked::cuda::Backend backend, const BlocksToDecompose& blocks);
[[nodiscard]] std::unique_ptr<DevicePass> library_pass(int number, const BlocksToDecompose& blocks, std::size_t count,
                                                       LibraryRoute route);

}  // namespace spiked::validation::cuda
