#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/random/address.hpp"

/// The implementations ("paths") of the normals in normal.hpp, for that file and for tests. All give the same bits.
namespace spiked::stream::detail {

/// The number of word blocks that a path processes at a time.
inline constexpr std::size_t group_blocks = 8;
using WordGroup = std::array<PhiloxCounter, group_blocks>;

/// The number of entries that come from one word block.
template <class Real>
inline constexpr std::size_t block_normals = sizeof(PhiloxCounter) / (sizeof(Real) == 8 ? 8 : 4);

/// One path: the normals from given words, and the normals from the words at `counter`, `counter` + 1, ... for whole
/// groups. Element numbers wrap at 2^32.
template <class Real>
struct NormalPath {
    void (*from_words)(const WordGroup& words, Real* out);
    void (*fill_groups)(PhiloxCounter counter, PhiloxKey key, std::size_t groups, Real* out);
};

/// The reference, which computes one number at a time and runs on any processor.
template <class Real>
[[nodiscard]] const NormalPath<Real>& plain_path();

/// Computes eight (float) or four (double) pairs at a time. Null if the processor lacks AVX2 or FMA.
template <class Real>
[[nodiscard]] const NormalPath<Real>* avx2_path();

template <class Real>
void fill_normal(const NormalPath<Real>& path, const Stream& stream, std::uint64_t first, std::span<Real> out);

}  // namespace spiked::stream::detail
