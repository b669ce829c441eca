#pragma once
#include "estimators/svd/cuda/back_transformation.hpp"
#include "estimators/svd/cuda/bidiagonal_values.hpp"
#include "estimators/svd/cuda/bidiagonal_vectors.hpp"
#include "estimators/svd/cuda/bidiagonalisation.hpp"
#include "estimators/svd/cuda/bidiagonalisation_in_memory.hpp"

/// A batched decomposition as a sequence of kernels for any executor (core/device/team.hpp): on a GPU or, in tests, on
/// the host.
namespace spiked::estimators::cuda {

/// The register tiles that are compiled, smallest first: up to 16 row_slots rows by 8 groups columns.
template <unsigned row_slots, unsigned groups>
struct Tiling {};
template <class Real, class Visitor>
void visit_tilings(Visitor&& visit) {
    visit(Tiling<2, 4>());
    visit(Tiling<4, 8>());
    visit(Tiling<6, 12>());
    visit(Tiling<8, 8>());
    visit(Tiling<8, 16>());
    if constexpr (sizeof(Real) == 4) visit(Tiling<16, 16>());
}

/// Whether the kernels support blocks of this shape: up to 256 x 256. Larger blocks are decomposed on the CPU.
[[nodiscard]] inline bool fits(std::size_t long_side, std::size_t short_side) {
    return long_side <= BidiagonaliseInMemory<double>::most_rows && short_side > 0;
}

/// Whether a kernel that starts after `done` rows and columns passes the rest of its tile on to a smaller one.
template <class Kernel>
[[nodiscard]] bool hands_over_from(const BatchSize& size, unsigned done) {
    return Kernel::can_hand_over && size.short_side - done > Kernel::own_columns;
}
/// Whether the first kernel does so for blocks of this size.
template <class Real>
[[nodiscard]] bool hands_over(const BatchSize& size) {
    bool found = false;
    bool hands = false;
    visit_tilings<Real>([&]<unsigned row_slots, unsigned groups>(Tiling<row_slots, groups>) {
        using Kernel = Bidiagonalise<Real, row_slots, groups>;
        if (found || size.long_side > Kernel::most_rows || size.short_side > Kernel::most_columns) return;
        found = true;
        hands = hands_over_from<Kernel>(size, 0);
    });
    return hands;
}

/// Places the arrays of a batch, except `blocks`, in one chunk of memory, given that the vectors of `part` blocks are
/// computed at once. Returns the number of bytes; `memory` may be null when only this number is wanted.
template <class Real>
std::size_t lay_out(unsigned char* memory, const Real* blocks, const BatchSize& size, std::uint32_t part,
                    DecompositionBatch<Real>& batch) {
    std::size_t used = 0;
    const auto take = [&]<class T>(T*& array, std::size_t count) {
        array = memory == nullptr ? nullptr : reinterpret_cast<T*>(memory + used);
        used += (count * sizeof(T) + 255) / 256 * 256;
    };
    const std::size_t count = size.count;
    const std::size_t values = count * size.short_side;
    batch.size = size;
    batch.blocks = blocks;
    take(batch.status, count);
    take(batch.exponents, count);
    take(batch.left, count * size.block_entries());
    take(batch.right, values * size.short_side);
    take(batch.trailing, hands_over<Real>(size) ? count * trailing_entries : 0);
    if (!hands_over<Real>(size)) batch.trailing = nullptr;
    take(batch.left_scales, values);
    take(batch.right_scales, values);
    take(batch.diagonal, values);
    take(batch.off_diagonal, values);
    take(batch.eigenvalues, values);
    take(batch.scaled_values, values);
    take(batch.values, values);
    take(batch.bidiagonal_right, std::size_t{part} * size.vectors * size.short_side);
    take(batch.bidiagonal_left, std::size_t{part} * size.vectors * size.short_side);
    take(batch.vector_work, size.vectors == 0 ? 0 : part * BidiagonalVectors<Real>::memory_of_block(size));
    take(batch.left_vectors, count * size.vectors * size.long_side);
    take(batch.right_vectors, values * size.vectors);
    return used;
}

/// Number of blocks whose vectors are computed at once, which limits the memory for them.
inline constexpr std::uint32_t vector_batch_size = 16384;

/// Computes the bidiagonal matrices of a batch that fits, and their reflectors. It uses the smallest tile that holds
/// the blocks and then, where they are passed on, the smallest tile that holds the remaining part.
template <class Real, class Executor>
void bidiagonalise(Executor& executor, const DecompositionBatch<Real>& batch) {
    const BatchSize& size = batch.size;
    unsigned done = 0;
    for (bool reduced = false; !reduced;) {
        bool found = false;
        visit_tilings<Real>([&]<unsigned row_slots, unsigned groups>(Tiling<row_slots, groups>) {
            using Kernel = Bidiagonalise<Real, row_slots, groups>;
            if (found || size.long_side - done > Kernel::most_rows || size.short_side - done > Kernel::most_columns)
                return;
            found = true;
            const bool hands = hands_over_from<Kernel>(size, done);
            executor.launch(Kernel{batch, done, hands}, size.count);
            reduced = !hands;
            if (hands) done += Kernel::own_columns;
        });
        if (found) continue;
        executor.launch(BidiagonaliseInMemory<Real>{batch}, size.count);
        reduced = true;
    }
}

/// Computes all singular values and the leading vectors of a batch that fits, the vectors for `part` blocks at a time.
template <class Real, class Executor>
void decompose(Executor& executor, const DecompositionBatch<Real>& batch, std::uint32_t part) {
    const BatchSize& size = batch.size;
    bidiagonalise(executor, batch);
    const TridiagonalEigenvalues<Real> eigenvalues{batch};
    executor.launch(eigenvalues, eigenvalues.blocks());
    const SingularValues<Real> values{batch};
    executor.launch(values, values.blocks());
    if (size.vectors == 0) return;
    for (std::uint32_t first = 0; first < size.count; first += part) {
        const std::uint32_t some = size.count - first < part ? size.count - first : part;
        executor.launch(BidiagonalVectors<Real>{batch, first}, some);
        const auto back = [&](const auto& kernel) { executor.launch(kernel, kernel.blocks()); };
        if (size.long_side <= 64)
            back(BackTransform<Real, 2>{batch, first, some});
        else if (size.long_side <= 128)
            back(BackTransform<Real, 4>{batch, first, some});
        else
            back(BackTransform<Real, 8>{batch, first, some});
    }
}

}  // namespace spiked::estimators::cuda
