#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/host_device.hpp"

/// The data that the kernels of a batched decomposition pass to each other: arrays in device memory, one block after
/// the other.
namespace spiked::estimators::cuda {

/// The outcome for a block. Any status but `fine` leaves zeros in the outputs, never NaN.
enum class BlockStatus : std::uint8_t {
    fine = 0,
    not_finite = 1,   ///< an entry is NaN or infinite
    for_the_host = 2  ///< values are so close or so small that the vectors fail their checks; they are left to LAPACK
                      ///< in BatchDecomposition
};

/// Largest number of vectors per block, one per lane of a warp.
inline constexpr unsigned most_vectors = 32;

/// The part of a block that one kernel passes on to a kernel with smaller tiles: column-major, with this number of
/// rows.
inline constexpr unsigned trailing_side = 96;
inline constexpr std::size_t trailing_entries = std::size_t{trailing_side} * trailing_side;

/// Sizes of one batch, with long side >= short side, whichever of them is the number of rows.
struct BatchSize {
    std::uint32_t count = 0;
    std::uint32_t long_side = 0;
    std::uint32_t short_side = 0;
    bool wide = false;          ///< rows < columns: blocks are read transposed
    std::uint32_t vectors = 0;  ///< wanted from each block, at most most_vectors and the short side

    SPIKED_DEVICE std::size_t block_entries() const { return std::size_t{long_side} * short_side; }
};

template <class Real>
struct DecompositionBatch {
    BatchSize size;
    const Real* blocks;       ///< column-major, long_side x short_side or, where wide, short_side x long_side
    BlockStatus* status;      ///< of each block
    std::int32_t* exponents;  ///< exponent of the power of two that each block was scaled by

    /// A = H_0 H_1 .. B (G_0 G_1 ..)^T, H = I - scale u u^T, G = I - scale v v^T. u_k is in column k of long_side x
    /// short_side from entry k on, v_k in column k of short_side x short_side from entry k + 1 on; the entries before
    /// are not written.
    Real* left;
    Real* right;
    Real* left_scales;
    Real* right_scales;
    Real* trailing;        ///< trailing_entries of each block, temporary; null where no block is passed on
    double* diagonal;      ///< of B, short_side
    double* off_diagonal;  ///< short_side, the last one 0

    double* eigenvalues;    ///< of B B^T, unordered; the first one is NaN where QL did not converge
    double* scaled_values;  ///< singular values of B, descending
    double* values;         ///< of the block

    /// Vectors of B and of the block, `size.vectors` columns each. Those of B, and the work arrays for them, exist only
    /// for the blocks of one part of the batch.
    double* bidiagonal_right;  ///< short_side x vectors
    double* bidiagonal_left;
    double* vector_work;  ///< of BidiagonalVectors, where shared memory is too small
    Real* left_vectors;   ///< long_side x vectors: left vectors of a tall block, right vectors of a wide one
    Real* right_vectors;  ///< short_side x vectors
};

}  // namespace spiked::estimators::cuda
