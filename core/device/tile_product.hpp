#pragma once
#include <cmath>
#include <cstddef>

#include "core/device/team.hpp"

namespace spiked::cuda {

/// Computes a tile of 64 x 64 entries of A diag(w) B^T with a block of 256 threads, each holding 4 x 4 entries in
/// registers. A is rows x inner and B is columns x inner, both column-major and of any size. Every entry is summed by
/// fma in the order of the inner index, whatever the tile. A thread's rows and columns are contiguous in groups of
/// sixteen bytes, which one load from shared memory fetches.
template <class Real>
class TileProduct {
public:
    static constexpr unsigned side = 64;
    static constexpr unsigned threads = 256;
    static constexpr unsigned slice = 16;  ///< inner indices held in shared memory at a time

    [[nodiscard]] static constexpr std::size_t shared_bytes() { return 2 * shared_bytes_for<Real>(side * slice); }
    /// The number of tiles along a column of the matrix; tile t is number t % down(rows) from the top.
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned down(unsigned rows) { return (rows + side - 1) / side; }
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned tiles(unsigned rows, unsigned columns) {
        return down(rows) * down(columns);
    }

    SPIKED_DEVICE TileProduct(unsigned rows, unsigned columns, unsigned tile)
        : rows_(rows), columns_(columns), top_(tile % down(rows) * side), left_(tile / down(rows) * side) {}

    /// All threads of the block must call this; `weight(k)` returns w_k.
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

    /// Calls put(row, column, sum) for each entry of this thread.
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

private:
    static constexpr unsigned each = 4;
    static constexpr unsigned across = side / each;  ///< threads along one side of the tile
    static constexpr unsigned contiguous = 16 / sizeof(Real);
    static_assert(each % contiguous == 0);

    /// The index in the tile of row or column i of a thread.
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned place(unsigned thread, unsigned i) {
        return i / contiguous * (across * contiguous) + thread * contiguous + i % contiguous;
    }

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

/// Accumulates 32 x 32 entries of a product in the registers of a warp, on the tensor units, which choose the order of
/// summation. Slices of 16 inner indices lie in shared memory at a distance of `pitch` elements, so that the reads of a
/// warp fall into different banks.
template <class Real>
class WarpTile {
public:
    static constexpr unsigned pitch = 64 + (sizeof(Real) == 4 ? 8 : 4);
    static constexpr unsigned slice = 16;

    SPIKED_DEVICE WarpTile() {
        SPIKED_UNROLL
        for (unsigned i = 0; i < down; ++i) SPIKED_UNROLL
        for (unsigned j = 0; j < across; ++j) SPIKED_UNROLL
        for (unsigned entry = 0; entry < 4; ++entry) sums_[i][j][entry] = 0;
    }
    /// x rounded to the input precision of the tensor units.
    SPIKED_DEVICE static Real rounded(Real x) {
        if constexpr (sizeof(Real) == 4)
            return as_tf32(x);
        else
            return x;
    }

    /// Adds the products of the 32 rows of slice `a` from `row` on with the 32 rows of slice `b` from `column` on.
    template <class Team, class Slice>
    SPIKED_DEVICE void add(Team& team, const Slice& a, unsigned row, const Slice& b, unsigned column) {
        SPIKED_UNROLL
        for (unsigned k = 0; k < slice; k += 8) {
            const unsigned at = (k + team.lane() % 4) * pitch + team.lane() / 4;
            Real from_a[down][4];
            Real from_b[across][2];
            SPIKED_UNROLL
            for (unsigned i = 0; i < down; ++i) SPIKED_UNROLL
            for (unsigned entry = 0; entry < 4; ++entry)
                from_a[i][entry] = a[at + row + 16 * i + 8 * (entry % 2) + entry / 2 * (4 * pitch)];
            SPIKED_UNROLL
            for (unsigned j = 0; j < across; ++j) SPIKED_UNROLL
            for (unsigned entry = 0; entry < 2; ++entry)
                from_b[j][entry] = b[at + column + 8 * j + entry * (4 * pitch)];
            SPIKED_UNROLL
            for (unsigned i = 0; i < down; ++i) SPIKED_UNROLL
            for (unsigned j = 0; j < across; ++j) team.multiply_add(sums_[i][j], from_a[i], from_b[j]);
        }
    }
    /// Calls put(row, column, sum) for each entry of this thread.
    template <class Team, class Put>
    SPIKED_DEVICE void each_entry(const Team& team, Put put) const {
        SPIKED_UNROLL
        for (unsigned j = 0; j < across; ++j) SPIKED_UNROLL
        for (unsigned i = 0; i < down; ++i) SPIKED_UNROLL
        for (unsigned entry = 0; entry < 4; ++entry)
            put(16 * i + 8 * (entry / 2) + team.lane() / 4, 8 * j + 2 * (team.lane() % 4) + entry % 2,
                sums_[i][j][entry]);
    }

private:
    static constexpr unsigned down = 2;
    static constexpr unsigned across = 4;
    Real sums_[down][across][4];
};

/// Computes a tile of 64 x 64 entries of A B^T on the tensor units, a quarter per warp. A is rows x inner and B is
/// columns x inner, both column-major and of any size. Floats are split into a high and a low part of 11 bits each; the
/// product of the low parts is left out, which gives an error of 1e-6 times the sum of the absolute terms.
template <class Real>
class TensorProduct {
public:
    using Tile = WarpTile<Real>;
    static constexpr unsigned side = 64;
    static constexpr unsigned threads = 128;

    [[nodiscard]] static constexpr std::size_t shared_bytes() {
        return 2 * shared_bytes_for<Real>(parts * Tile::pitch * Tile::slice);
    }
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned down(unsigned rows) { return (rows + side - 1) / side; }
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned tiles(unsigned rows, unsigned columns) {
        return down(rows) * down(columns);
    }
    /// The first row of the tile that the thread's warp computes.
    template <class Team>
    [[nodiscard]] SPIKED_DEVICE static unsigned first_row(const Team& team) {
        return team.warp() % 2 * (side / 2);
    }
    template <class Team>
    [[nodiscard]] SPIKED_DEVICE static unsigned first_column(const Team& team) {
        return team.warp() / 2 * (side / 2);
    }

    SPIKED_DEVICE TensorProduct(unsigned rows, unsigned columns, unsigned tile)
        : rows_(rows), columns_(columns), top_(tile % down(rows) * side), left_(tile / down(rows) * side) {}

    /// With `a_transposed`, A is stored as inner x rows; with `b_transposed`, B as inner x columns.
    template <class Team>
    SPIKED_DEVICE void multiply(Team& team, const Real* a, const Real* b, unsigned inner, bool b_transposed = false,
                                bool a_transposed = false) {
        multiply_part(team, a, a_transposed ? inner : rows_, a_transposed, b, b_transposed ? inner : columns_,
                      b_transposed, inner);
    }
    /// The same for the first `inner` inner indices of larger factors, whose columns have the given distances.
    template <class Team>
    SPIKED_DEVICE void multiply_part(Team& team, const Real* a, unsigned a_distance, bool a_transposed, const Real* b,
                                     unsigned b_distance, bool b_transposed, unsigned inner) {
        constexpr unsigned whole = Tile::pitch * Tile::slice;
        auto a_slice = team.template take<Real>(parts * whole);
        auto b_slice = team.template take<Real>(parts * whole);
        const unsigned row = first_row(team);
        const unsigned column = first_column(team);
        Reader from_a(team, a, a_distance, a_transposed, top_, rows_, inner);
        Reader from_b(team, b, b_distance, b_transposed, left_, columns_, inner);
        const bool whole_tile = top_ + side <= rows_ && left_ + side <= columns_ && inner % Tile::slice == 0;
        const auto read = [&](unsigned first) {
            from_a.read(first, whole_tile);
            from_b.read(first, whole_tile);
        };
        read(0);
        for (unsigned first = 0; first < inner; first += Tile::slice) {
            from_a.store(a_slice);
            from_b.store(b_slice);
            team.barrier();
            if (first + Tile::slice < inner) read(first + Tile::slice);  // while this slice is multiplied
            if constexpr (parts == 2) {
                sums_.add(team, a_slice + whole, row, b_slice + 0, column);
                sums_.add(team, a_slice + 0, row, b_slice + whole, column);
            }
            sums_.add(team, a_slice + 0, row, b_slice + 0, column);
            team.barrier();
        }
    }

    /// Calls put(row, column, sum) for each entry of this thread.
    template <class Team, class Put>
    SPIKED_DEVICE void each_entry(const Team& team, Put put) const {
        sums_.each_entry(team, [&](unsigned i, unsigned j, Real sum) {
            const unsigned row = top_ + first_row(team) + i;
            const unsigned column = left_ + first_column(team) + j;
            if (row < rows_ && column < columns_) put(row, column, sum);
        });
    }

private:
    static constexpr unsigned parts = sizeof(Real) == 4 ? 2 : 1;

    /// Reads the slices of a factor, one after the other. Neighbouring threads read neighbouring numbers, in both
    /// storage orders. The numbers that a thread reads have a constant distance, within a slice and from slice to
    /// slice.
    class Reader {
    public:
        template <class Team>
        SPIKED_DEVICE Reader(const Team& team, const Real* factor, unsigned distance, bool transposed,
                             unsigned first_outer, unsigned outer_size, unsigned inner_size)
            : outer_(transposed ? team.rank() / Tile::slice : team.rank() % side),
              inner_(transposed ? team.rank() % Tile::slice : team.rank() / side),
              outer_step_(transposed ? threads / Tile::slice : 0),
              inner_step_(transposed ? 0 : threads / side),
              outer_left_(outer_size - first_outer),
              inner_size_(inner_size),
              from_(factor + (transposed ? std::size_t{first_outer + outer_} * distance + inner_
                                         : std::size_t{inner_} * distance + first_outer + outer_)),
              step_((outer_step_ + inner_step_) * distance),
              slice_step_(transposed ? Tile::slice : std::size_t{Tile::slice} * distance) {}

        /// Reads the slice whose first inner index is `first`, with zeros outside the factor.
        SPIKED_DEVICE void read(unsigned first, bool whole_tile) {
            if (whole_tile) {
                SPIKED_UNROLL
                for (unsigned load = 0; load < loads; ++load) next_[load] = from_[load * step_];
            } else {
                SPIKED_UNROLL
                for (unsigned load = 0; load < loads; ++load) {
                    const bool inside =
                        first + inner_ + load * inner_step_ < inner_size_ && outer_ + load * outer_step_ < outer_left_;
                    next_[load] = inside ? from_[load * step_] : Real{0};
                }
            }
            from_ += slice_step_;
        }
        template <class Slice>
        SPIKED_DEVICE void store(Slice& slice) const {
            const unsigned first = inner_ * Tile::pitch + outer_;
            const unsigned step = inner_step_ * Tile::pitch + outer_step_;
            SPIKED_UNROLL
            for (unsigned load = 0; load < loads; ++load) {
                const Real high = Tile::rounded(next_[load]);
                slice[first + load * step] = high;
                if constexpr (parts == 2)
                    slice[Tile::pitch * Tile::slice + first + load * step] = Tile::rounded(next_[load] - high);
            }
        }

    private:
        static constexpr unsigned loads = side * Tile::slice / threads;

        unsigned outer_;
        unsigned inner_;
        unsigned outer_step_;
        unsigned inner_step_;
        unsigned outer_left_;
        unsigned inner_size_;
        const Real* from_;
        unsigned step_;
        std::size_t slice_step_;
        Real next_[loads];
    };

    unsigned rows_;
    unsigned columns_;
    unsigned top_;
    unsigned left_;
    Tile sums_;
};

}  // namespace spiked::cuda
