#pragma once
#include <cmath>
#include <cstddef>

#include "theory/base/cuda/team.hpp"

namespace spiked::cuda {

/// 64 x 64 entries of A diag(w) B^T by a block of 256 threads, 4 x 4 in each thread's registers: A rows x inner, B
/// columns x inner, both column-major, edges of any size. Every entry is summed by fma in the order of the inner index,
/// whatever the tile. Neighbouring threads have neighbouring rows.
template <class Real>
class TileProduct {
public:
    static constexpr unsigned threads = 256;
    static constexpr unsigned side = 64;
    static constexpr unsigned slice = 16;  ///< inner indices that lie in shared memory at once

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
        const unsigned row = team.rank() % across;
        const unsigned column = team.rank() / across;
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
            for (unsigned k = 0; k < slice; ++k) {
                Real from_a[each];
                Real from_b[each];
                SPIKED_UNROLL
                for (unsigned i = 0; i < each; ++i) {
                    from_a[i] = a_slice[k * side + row + across * i];
                    from_b[i] = b_slice[k * side + column + across * i];
                }
                SPIKED_UNROLL
                for (unsigned i = 0; i < each; ++i) {
                    SPIKED_UNROLL
                    for (unsigned j = 0; j < each; ++j) sums_[i][j] = std::fma(from_a[i], from_b[j], sums_[i][j]);
                }
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
                const unsigned row = top_ + team.rank() % across + across * i;
                const unsigned column = left_ + team.rank() / across + across * j;
                if (row < rows_ && column < columns_) put(row, column, sums_[i][j]);
            }
        }
    }

private:
    static constexpr unsigned each = 4;
    static constexpr unsigned across = side / each;

    unsigned rows_;
    unsigned columns_;
    unsigned top_;
    unsigned left_;
    Real sums_[each][each];
};

}  // namespace spiked::cuda
