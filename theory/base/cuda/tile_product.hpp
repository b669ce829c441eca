#pragma once
#include <cmath>
#include <cstddef>

#include "theory/base/cuda/team.hpp"

namespace spiked::cuda {

/// 64 x 64 entries of A diag(w) B^T by one thread block, each x each in a thread's registers: A rows x inner, B columns
/// x inner, both column-major, edges of any size. Every entry is summed by fma in the order of the inner index,
/// whatever the tile. A thread's rows and columns lie together by sixteen bytes, what a load from shared memory brings
/// at once.
template <class Real, unsigned each = 4>
class TileProduct {
public:
    static constexpr unsigned side = 64;
    static constexpr unsigned across = side / each;  ///< threads beside each other
    static constexpr unsigned threads = across * across;
    static constexpr unsigned slice = 16;  ///< inner indices that lie in shared memory at once
    static constexpr unsigned together = 16 / sizeof(Real);
    static_assert(each % together == 0);

    [[nodiscard]] static constexpr std::size_t shared_bytes() { return 2 * shared_room<Real>(side * slice); }
    /// Tiles of a matrix; tile t is number t % down(rows) from the top.
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned down(unsigned rows) { return (rows + side - 1) / side; }
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned tiles(unsigned rows, unsigned columns) {
        return down(rows) * down(columns);
    }

    SPIKED_DEVICE TileProduct(unsigned rows, unsigned columns, unsigned tile)
        : rows_(rows), columns_(columns), top_(tile % down(rows) * side), left_(tile / down(rows) * side) {}

    /// All threads of the block take part; `weight(k)` is w_k.
    template <class Team, class Weight>
    SPIKED_DEVICE void multiply(Team& team, const Real* a, const Real* b, unsigned inner, Weight weight) {
        auto a_slice = team.template take<Real>(side * slice);
        auto b_slice = team.template take<Real>(side * slice);
        SPIKED_UNROLL
        for (unsigned i = 0; i < each; ++i) {
            SPIKED_UNROLL
            for (unsigned j = 0; j < each; ++j) sums_[i][j] = 0;
        }
        for (unsigned first = 0; first < inner; first += slice) {
            SPIKED_UNROLL
            for (unsigned part = 0; part < side * slice / threads; ++part) {
                const unsigned at = part * threads + team.rank();
                const unsigned k = first + at / side;
                const bool inside_a = k < inner && top_ + at % side < rows_;
                const bool inside_b = k < inner && left_ + at % side < columns_;
                a_slice[at] = inside_a ? weight(k) * a[std::size_t{k} * rows_ + top_ + at % side] : Real{0};
                b_slice[at] = inside_b ? b[std::size_t{k} * columns_ + left_ + at % side] : Real{0};
            }
            team.barrier();
            if (inner - first >= slice) {
                SPIKED_UNROLL
                for (unsigned k = 0; k < slice; ++k) add(team, a_slice, b_slice, k);
            } else {
                for (unsigned k = 0; k < inner - first; ++k) add(team, a_slice, b_slice, k);
            }
            team.barrier();
        }
    }

    /// put(row, column, sum) of this thread's entries.
    template <class Team, class Put>
    SPIKED_DEVICE void each_entry(const Team& team, Put put) const {
        SPIKED_UNROLL
        for (unsigned j = 0; j < each; ++j) {
            SPIKED_UNROLL
            for (unsigned i = 0; i < each; ++i) {
                const unsigned row = top_ + place(team.rank() % across, i);
                const unsigned column = left_ + place(team.rank() / across, j);
                if (row < rows_ && column < columns_) put(row, column, sums_[i][j]);
            }
        }
    }

    /// Row or column i of a thread.
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned place(unsigned thread, unsigned i) {
        return i / together * (across * together) + thread * together + i % together;
    }

private:
    template <class Team, class Slice>
    SPIKED_DEVICE void add(const Team& team, const Slice& a_slice, const Slice& b_slice, unsigned k) {
        Real from_a[each];
        Real from_b[each];
        SPIKED_UNROLL
        for (unsigned i = 0; i < each; ++i) {
            from_a[i] = a_slice[k * side + place(team.rank() % across, i)];
            from_b[i] = b_slice[k * side + place(team.rank() / across, i)];
        }
        SPIKED_UNROLL
        for (unsigned i = 0; i < each; ++i) {
            SPIKED_UNROLL
            for (unsigned j = 0; j < each; ++j) sums_[i][j] = std::fma(from_a[i], from_b[j], sums_[i][j]);
        }
    }

    unsigned rows_;
    unsigned columns_;
    unsigned top_;
    unsigned left_;
    Real sums_[each][each];
};

}  // namespace spiked::cuda
