#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/host_device.hpp"

/// What the kernels of a batched decomposition hand to each other: arrays in device memory, block after block.
namespace spiked::estimators::cuda {

/// What became of a block. Anything but `fine` leaves zeros in its outputs, never NaN.
enum class BlockStatus : std::uint8_t {
    fine = 0,
    not_finite = 1,   ///< an entry is NaN or infinite
    for_the_host = 2  ///< values so close or so small that these vectors fail their checks: BatchDecomposition's LAPACK
};

/// Vectors found at once, one a lane of a warp.
inline constexpr unsigned most_vectors = 32;
/// Tridiagonal matrices that lie side by side for QL.
inline constexpr unsigned interleaved = 16;

/// What is left of a block when a kernel hands it to one with smaller tiles: column-major, of this many rows.
inline constexpr unsigned trailing_side = 64;
inline constexpr std::size_t trailing_entries = std::size_t{trailing_side} * trailing_side;

/// Sizes of one batch: long side >= short side, whichever of them the rows are.
struct BatchSize {
    std::uint32_t count = 0;
    std::uint32_t long_side = 0;
    std::uint32_t short_side = 0;
    bool wide = false;          ///< rows < columns: blocks are read transposed
    std::uint32_t vectors = 0;  ///< wanted of each block, at most most_vectors and the short side

    SPIKED_DEVICE std::size_t block_entries() const { return std::size_t{long_side} * short_side; }
};

template <class Real>
struct DecompositionBatch {
    BatchSize size;
    const Real* blocks;       ///< column-major, long_side x short_side or, where wide, short_side x long_side
    BlockStatus* status;      ///< of a block
    std::int32_t* exponents;  ///< power of two that a block was scaled by

    /// A = H_0 H_1 .. B (G_0 G_1 ..)^T, H = I - scale u u^T, G = I - scale v v^T: u_k in column k of long_side x
    /// short_side from entry k on, v_k in column k of short_side x short_side from entry k + 1 on; what lies before is
    /// not written.
    Real* left;
    Real* right;
    Real* left_scales;
    Real* right_scales;
    Real* trailing;        ///< trailing_entries of each block, on the way; null where none is handed over
    double* diagonal;      ///< of B, short_side
    double* off_diagonal;  ///< short_side, the last one 0

    double* tridiagonal;          ///< `interleaved` matrices side by side: diagonals
    double* tridiagonal_squared;  ///< and squared off-diagonals
    double* eigenvalues;          ///< of B B^T, in no order, NaN first where QL did not converge
    double* scaled_values;        ///< singular values of B, descending
    double* values;               ///< of the block

    /// Vectors of B and of the block, `size.vectors` columns each; those of B and the work of finding them only for
    /// the blocks of one part of the batch.
    double* bidiagonal_right;  ///< short_side x vectors
    double* bidiagonal_left;
    double* vector_work;  ///< 4 short_side 16 a block, twice that for more than 16 vectors
    Real* left_vectors;   ///< long_side x vectors: left of a tall block, right of a wide one
    Real* right_vectors;  ///< short_side x vectors
};

}  // namespace spiked::estimators::cuda
