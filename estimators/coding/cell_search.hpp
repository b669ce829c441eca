#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {

/// cell_of (scalar_quantizer.hpp) for many floats at once, thresholds and levels rounded to float. Up to 4 bits it
/// searches eight or sixteen values at a time where the processor has AVX2 or AVX-512 (0.2 to 0.4 ns a value); with
/// more bits it looks the cell up on a grid finer than the thresholds and compares once (1 to 2 ns); otherwise it
/// searches a value at a time: the same answers. A NaN falls into cell 0.
class CellSearch {
public:
    explicit CellSearch(const theory::Codebook& codebook);

    /// Index and level of the cell of each value. The three have one length.
    void quantize(std::span<const float> values, std::span<std::uint8_t> cells, std::span<float> levels) const;

    // Column-major blocks of factors.size() rows; `block` and `cells` have one length, a multiple of that.

    /// Cells of entry (t, j) times factors[t].
    void find(std::span<const float> block, std::span<const float> factors, std::span<std::uint8_t> cells) const;
    /// Entry (t, j) becomes its cell's level times factors[t].
    void set_levels(std::span<const std::uint8_t> cells, std::span<const float> factors, std::span<float> block) const;
    /// The same, added to the entry.
    void add_levels(std::span<const std::uint8_t> cells, std::span<const float> factors, std::span<float> block) const;

private:
    void make_grid();
    [[nodiscard]] std::size_t cell_of_one(float value) const;

    unsigned bits_;
    std::vector<float> thresholds_;
    std::vector<float> levels_;
    std::array<std::array<float, 8>, 4> tree_{};  ///< thresholds by depth, for up to 4 bits

    /// Intervals of one width, each with at most one threshold, and the cell of their left ends; none where thresholds
    /// lie too close together for a table.
    struct Grid {
        float first = 0.0F;
        float last = 0.0F;
        float per_unit = 0.0F;
        std::vector<std::uint8_t> cells;
    };
    Grid grid_;
};

}  // namespace spiked::estimators
