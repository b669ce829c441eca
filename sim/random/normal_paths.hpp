#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/random/address.hpp"

/// The ways to the normals of normal.hpp, for it and for tests: each gives the same bits.
namespace spiked::stream::detail {

/// Word blocks a path makes at a time.
inline constexpr std::size_t group_blocks = 8;
using WordGroup = std::array<PhiloxCounter, group_blocks>;

/// Entries that come from one word block.
template <class Real>
inline constexpr std::size_t block_normals = sizeof(PhiloxCounter) / (sizeof(Real) == 8 ? 8 : 4);

/// One path: what it makes of given words, and of the words at `counter`, `counter` + 1, ... for whole groups.
/// An element beyond 2^32 wraps.
template <class Real>
struct NormalPath {
    void (*from_words)(const WordGroup& words, Real* out);
    void (*fill_groups)(PhiloxCounter counter, PhiloxKey key, std::size_t groups, Real* out);
};

/// One number at a time, on any processor: the reference.
template <class Real>
[[nodiscard]] const NormalPath<Real>& plain_path();

/// Eight (float) or four (double) pairs at a time. Null where the processor lacks AVX2 or FMA.
template <class Real>
[[nodiscard]] const NormalPath<Real>* avx2_path();

template <class Real>
void fill_normal(const NormalPath<Real>& path, const Stream& stream, std::uint64_t first, std::span<Real> out);

}  // namespace spiked::stream::detail
