#pragma once
#include "estimators/svd/bidiagonalisation.hpp"
#include "estimators/svd/reflectors.hpp"

/// Reduction of an upper triangular band matrix to bidiagonal form (Murata and Horikoshi 1975, Lang 1996). Sweep i
/// reduces row i by a reflector from the right, which fills a square on the diagonal; a reflector from the left clears
/// the first column of this square and fills the square to its right, a reflector from the right clears the first row
/// of that one, and so on to the end of the matrix. What remains of the squares is left to the next sweep.
///
/// Registers start at multiples of their width in every column. Reflectors, which start anywhere, are copied to such
/// registers with zeros around them.
namespace spiked::estimators::kernels {

template <class Pack>
struct BulgeChasing {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    using Bidiagonal = Bidiagonalisation<Pack>;
    using Applied = Reflectors<Pack>;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t strip = Pack::many_registers ? 8 : 4;
    static constexpr std::size_t group = reflector_group;

    SPIKED_KERNEL static std::size_t floor(std::size_t i) { return i / width * width; }

    /// A reflector v from the right on columns `start` .. start + b - 1 and a reflector w from the left on the same
    /// rows. Columns are processed in strips that start at multiples of their width. A strip's columns beside those
    /// that a reflector changes stay as they are: their entries of v, or their own entries in the rows of w, are zero.
    struct Step {
        const BandReduction<Real>& band;
        std::size_t source;  ///< row that the reflector from the right reduces
        std::size_t start;
        std::size_t first;   ///< first column of the strips
        std::size_t upper;   ///< register of the first row after `source`
        std::size_t middle;  ///< register of row `start`
        std::size_t end;     ///< end of the rows
        Real* v;             ///< entry c - first is for column c
        Real* y;             ///< entry i - upper is for row i
        Real* w;             ///< entry i - middle is for row i

        SPIKED_KERNEL Step(const BandReduction<Real>& matrix, std::size_t sweep, std::size_t s)
            : band(matrix),
              source(s == 0 ? sweep : sweep + 1 + (s - 1) * matrix.shape.width),
              start(sweep + 1 + s * matrix.shape.width),
              first(start / strip * strip),
              upper(floor(source + 1)),
              middle(floor(start)),
              end(start + matrix.shape.width),
              v(matrix.work),
              y(matrix.work + 3 * matrix.shape.width),
              w(matrix.work + 6 * matrix.shape.width) {}

        [[nodiscard]] SPIKED_KERNEL Real* column(std::size_t c) const {
            return band.entries + band.shape.column_start(c);
        }
    };

    /// Computes the reflector that reduces the source row, and y = scale (rows after it) v.
    SPIKED_KERNEL static typename Bidiagonal::Reflector make_right(const Step& step) {
        const std::size_t b = step.band.shape.width;
        const std::size_t stride = step.band.shape.stride();
        const std::size_t offset = step.start - step.first;
        Real* const v = step.v + offset;
        for (std::size_t c = 0; c < offset; ++c) step.v[c] = 0;
        for (std::size_t c = 0; c < b; ++c) {
            Real& entry = step.column(step.start + c)[step.source];
            v[c] = entry;
            entry = 0;
        }
        for (std::size_t c = offset + b; c < b + strip + width; ++c) step.v[c] = 0;
        const auto right = Bidiagonal::reflector(v[0], Bidiagonal::tail_square(step.v, offset + 1, offset + b));
        step.column(step.start)[step.source] = right.beta;
        v[0] -= right.beta;
        for (std::size_t i = step.upper; i < step.end; i += width) Pack::store(step.y + i - step.upper, Pack::set(0));
        for (std::size_t c = 0; c < offset + b; c += strip) {
            const Real* const columns = step.column(step.first + c);
            Vector by[strip];
            for (std::size_t k = 0; k < strip; ++k) by[k] = Pack::set(step.v[c + k]);
            for (std::size_t i = step.upper; i < step.end; i += width) {
                Vector sum = Pack::load(step.y + i - step.upper);
                for (std::size_t k = 0; k < strip; ++k)
                    sum = Pack::fma(Pack::load(columns + k * stride + i), by[k], sum);
                Pack::store(step.y + i - step.upper, sum);
            }
        }
        const Vector scale = Pack::set(right.scale);
        for (std::size_t i = step.upper; i < step.end; i += width) {
            Vector y = scale * Pack::load(step.y + i - step.upper);
            if (i <= step.source) y = Pack::from(y, step.source + 1 - i);
            Pack::store(step.y + i - step.upper, y);
        }
        return right;
    }

    /// Computes the reflector w that clears the first column once the reflector from the right has been applied to it.
    SPIKED_KERNEL static typename Bidiagonal::Reflector make_left(const Step& step) {
        const Real* const a = step.column(step.start);
        const Vector by = Pack::set(step.v[step.start - step.first]);
        typename Pack::Squares sum = Pack::no_squares();
        for (std::size_t i = step.middle; i < step.end; i += width) {
            Vector x = Pack::fnma(Pack::load(step.y + i - step.upper), by, Pack::load(a + i));
            if (i < step.start) x = Pack::from(x, step.start - i);
            if (i + width > step.end) x = x - Pack::from(x, step.end - i);
            Pack::store(step.w + i - step.middle, x);
            if (i <= step.start) x = Pack::from(x, step.start + 1 - i);
            Pack::add_square(sum, x);
        }
        Real& head = step.w[step.start - step.middle];
        const auto left = Bidiagonal::reflector(head, Pack::total(sum));
        head -= left.beta;
        return left;
    }

    /// Applies both reflectors to a strip of columns: a <- a - y v, then a <- a - w (scale w^T a) for the rows from
    /// `middle` on. Without `v`, only the second.
    template <bool both>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void apply_to_strip(const Step& step, Real* columns,
                                                                                   const Real* v, Real scale) {
        const std::size_t stride = step.band.shape.stride();
        Vector by[strip];
        Vector sum[strip];
        for (std::size_t k = 0; k < strip; ++k) {
            sum[k] = Pack::set(0);
            if constexpr (both) by[k] = Pack::set(v[k]);
        }
        if constexpr (both)
            for (std::size_t i = step.upper; i < step.middle; i += width) {
                const Vector y = Pack::load(step.y + i - step.upper);
                for (std::size_t k = 0; k < strip; ++k) {
                    Real* const at = columns + k * stride + i;
                    Pack::store(at, Pack::fnma(y, by[k], Pack::load(at)));
                }
            }
        for (std::size_t i = step.middle; i < step.end; i += width) {
            const Vector w = Pack::load(step.w + i - step.middle);
            Vector y;
            if constexpr (both) y = Pack::load(step.y + i - step.upper);
            for (std::size_t k = 0; k < strip; ++k) {
                Vector x = Pack::load(columns + k * stride + i);
                if constexpr (both) {
                    x = Pack::fnma(y, by[k], x);
                    Pack::store(columns + k * stride + i, x);
                }
                sum[k] = Pack::fma(x, w, sum[k]);
            }
        }
        Real products[strip];
        Pack::sums(sum, products);
        for (std::size_t k = 0; k < strip; ++k) by[k] = Pack::set(scale * products[k]);
        for (std::size_t i = step.middle; i < step.end; i += width) {
            const Vector w = Pack::load(step.w + i - step.middle);
            for (std::size_t k = 0; k < strip; ++k) {
                Real* const at = columns + k * stride + i;
                Pack::store(at, Pack::fnma(w, by[k], Pack::load(at)));
            }
        }
    }

    SPIKED_KERNEL static void apply_both(const Step& step, const typename Bidiagonal::Reflector& left) {
        const std::size_t b = step.band.shape.width;
        std::size_t c = step.first;
        for (; c < step.start + b; c += strip)
            apply_to_strip<true>(step, step.column(c), step.v + c - step.first, left.scale);
        for (; c < step.start + 2 * b && c < step.band.shape.size; c += strip)
            apply_to_strip<false>(step, step.column(c), nullptr, left.scale);
        Real* const cleared = step.column(step.start);
        const Vector before = Pack::load(cleared + step.middle);
        Pack::store(cleared + step.middle, before - Pack::from(before, step.start - step.middle));
        for (std::size_t i = step.middle + width; i < step.end; i += width) Pack::store(cleared + i, Pack::set(0));
        cleared[step.start] = left.beta;
    }

    SPIKED_KERNEL static void keep(const BandShape& shape, Real* tile, std::size_t j, const Real* reflector,
                                   Real scale) {
        if (j == 0)
            for (std::size_t i = 0; i < shape.tile(); ++i) tile[i] = 0;
        Real* const to = tile + j * shape.tile_stride() + j;
        for (std::size_t i = 0; i < shape.width; i += width)
            Pack::store_anywhere(to + i, Pack::load_anywhere(reflector + i));
        tile[group * shape.tile_stride() + j] = scale;
    }

    SPIKED_KERNEL static void chase(const BandReduction<Real>& band, std::size_t bundle, std::size_t tick) {
        const BandShape& shape = band.shape;
        const std::size_t first = bundle * BandShape::bundle;
        std::size_t tiles = 0;  // of the bundle's groups before this sweep's
        for (std::size_t sweep = first, behind = 0; sweep < shape.bundle_end(bundle);
             ++sweep, behind += BandShape::lag) {
            if (sweep > first && sweep % group == 0) tiles += shape.steps(sweep - group);
            if (tick < behind) return;
            const std::size_t s = tick - behind;
            if (s >= shape.steps(sweep)) continue;
            if (s == 0) band.diagonal[sweep] = band.entries[shape.column_start(sweep) + sweep];
            const Step step(band, sweep, s);
            const auto right = make_right(step);
            if (s == 0) band.off_diagonal[sweep] = right.beta;
            const auto left = make_left(step);
            apply_both(step, left);
            if (band.left == nullptr) continue;
            const std::size_t at = (tiles + s) * shape.tile();
            keep(shape, band.right + at, sweep % group, step.v + step.start - step.first, right.scale);
            keep(shape, band.left + at, sweep % group, step.w + step.start - step.middle, left.scale);
        }
    }

    /// Computes the matrices T of tiles.
    SPIKED_KERNEL static void make_triangles(const BandShape& shape, Real* tiles, std::size_t count) {
        const std::size_t stride = shape.tile_stride();
        for (Real* tile = tiles; tile != tiles + count * shape.tile(); tile += shape.tile()) {
            Vector sum[8];
            for (Vector& some : sum) some = Pack::set(0);
            for (std::size_t i = 0; i < shape.width; i += width) {
                Vector y[group];
                for (std::size_t j = 0; j < group; ++j) y[j] = Pack::load_anywhere(tile + j * stride + i);
                for (std::size_t j = 1, at = 0; j < group; ++j)
                    for (std::size_t l = 0; l < j; ++l, ++at) sum[at] = Pack::fma(y[l], y[j], sum[at]);
            }
            Real overlap[8];
            Pack::sums({sum[0], sum[1], sum[2], sum[3]}, overlap);
            Pack::sums({sum[4], sum[5], sum[6], sum[7]}, overlap + 4);
            for (std::size_t i = shape.width; i < stride; ++i)
                for (std::size_t j = 1, at = 0; j < group; ++j)
                    for (std::size_t l = 0; l < j; ++l, ++at)
                        overlap[at] += tile[l * stride + i] * tile[j * stride + i];
            Real scale[group];
            for (std::size_t j = 0; j < group; ++j) scale[j] = tile[group * stride + j];
            typename Applied::Group made;
            Applied::make_triangle(scale, overlap, made);
            __builtin_memcpy(tile + group * (stride + 1), made.triangle, sizeof made.triangle);
        }
    }

    /// The reflectors of a group of sweeps are applied from the first step on: those of one sweep act on different
    /// rows, and the reflector of a step acts on no row of later steps of earlier sweeps.
    SPIKED_KERNEL static void apply(const BandShape& shape, const Real* tiles, Real* vectors, std::size_t wanted) {
        if (shape.size < 2) return;
        std::size_t at = shape.tiles();
        for (std::size_t sweep = (shape.size - 2) / group * group;; sweep -= group) {
            const std::size_t steps = shape.steps(sweep);
            at -= steps;
            for (std::size_t s = 0; s < steps; ++s) {
                const std::size_t start = sweep + 1 + s * shape.width;
                const std::size_t rows = shape.size - start;
                const Real* const tile = tiles + (at + s) * shape.tile();
                typename Applied::Group current;
                current.first = 0;
                current.end = rows < shape.width + group - 1 ? rows : shape.width + group - 1;
                for (std::size_t j = 0; j < group; ++j) current.y[j] = tile + j * shape.tile_stride();
                __builtin_memcpy(current.triangle, tile + group * (shape.tile_stride() + 1), sizeof current.triangle);
                Applied::template apply_to_lanes<0>(current, vectors + start * Applied::lanes, wanted);
            }
            if (sweep == 0) break;
        }
    }
};

}  // namespace spiked::estimators::kernels
