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

/// The same in double by the tensor units, 32 x 32 entries a warp, without weights; the order of the sums is theirs.
class TensorProduct {
public:
    static constexpr unsigned side = 64;
    static constexpr unsigned threads = 128;
    static constexpr unsigned slice = 16;

    [[nodiscard]] static constexpr std::size_t shared_bytes() { return 2 * shared_room<double>(pitch * slice); }
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned down(unsigned rows) { return (rows + side - 1) / side; }
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned tiles(unsigned rows, unsigned columns) {
        return down(rows) * down(columns);
    }

    SPIKED_DEVICE TensorProduct(unsigned rows, unsigned columns, unsigned tile)
        : rows_(rows), columns_(columns), top_(tile % down(rows) * side), left_(tile / down(rows) * side) {}

    template <class Team>
    SPIKED_DEVICE void multiply(Team& team, const double* a, const double* b, unsigned inner) {
        auto a_slice = team.template take<double>(pitch * slice);
        auto b_slice = team.template take<double>(pitch * slice);
        SPIKED_UNROLL
        for (unsigned i = 0; i < each; ++i) {
            SPIKED_UNROLL
            for (unsigned j = 0; j < each; ++j) sums_[i][j][0] = sums_[i][j][1] = 0;
        }
        const unsigned own_row = team.warp() % 2 * warp_side + team.lane() / 4;
        const unsigned own_column = team.warp() / 2 * warp_side + team.lane() / 4;
        for (unsigned first = 0; first < inner; first += slice) {
            SPIKED_UNROLL
            for (unsigned part = 0; part < side * slice / threads; ++part) {
                const unsigned at = part * threads + team.rank();
                const unsigned k = first + at / side;
                const bool inside_a = k < inner && top_ + at % side < rows_;
                const bool inside_b = k < inner && left_ + at % side < columns_;
                const unsigned to = at / side * pitch + at % side;
                a_slice[to] = inside_a ? a[std::size_t{k} * rows_ + top_ + at % side] : 0.0;
                b_slice[to] = inside_b ? b[std::size_t{k} * columns_ + left_ + at % side] : 0.0;
            }
            team.barrier();
            SPIKED_UNROLL
            for (unsigned four = 0; four < slice; four += 4) {
                const unsigned line = (four + team.lane() % 4) * pitch;
                double from_a[each];
                double from_b[each];
                SPIKED_UNROLL
                for (unsigned i = 0; i < each; ++i) {
                    from_a[i] = a_slice[line + own_row + 8 * i];
                    from_b[i] = b_slice[line + own_column + 8 * i];
                }
                SPIKED_UNROLL
                for (unsigned i = 0; i < each; ++i) {
                    SPIKED_UNROLL
                    for (unsigned j = 0; j < each; ++j) team.multiply_add(sums_[i][j], from_a[i], from_b[j]);
                }
            }
            team.barrier();
        }
    }

    /// put(row, column, sum) of this thread's entries.
    template <class Team, class Put>
    SPIKED_DEVICE void each_entry(const Team& team, Put put) const {
        SPIKED_UNROLL
        for (unsigned j = 0; j < 2 * each; ++j) {
            SPIKED_UNROLL
            for (unsigned i = 0; i < each; ++i) {
                const unsigned row = top_ + team.warp() % 2 * warp_side + team.lane() / 4 + 8 * i;
                const unsigned column =
                    left_ + team.warp() / 2 * warp_side + 8 * (j / 2) + 2 * (team.lane() % 4) + j % 2;
                if (row < rows_ && column < columns_) put(row, column, sums_[i][j / 2][j % 2]);
            }
        }
    }

private:
    static constexpr unsigned warp_side = 32;
    static constexpr unsigned each = warp_side / 8;  ///< 8 x 8 parts of a warp beside each other
    static constexpr unsigned pitch = side + 4;      ///< so that the four lines a warp reads lie in other banks

    unsigned rows_;
    unsigned columns_;
    unsigned top_;
    unsigned left_;
    double sums_[each][each][2];
};

}  // namespace spiked::cuda
