#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {

/// The search of cell_of (scalar_quantizer.hpp) for many floats, with thresholds and levels rounded to float; a cell is
/// a bin of the quantizer. Up to 4 bits it searches eight or sixteen values at a time where the processor has AVX2 or
/// AVX-512 (0.2 to 0.4 ns per value). With more bits it looks the bin up on a grid finer than the thresholds and
/// compares once (1 to 2 ns), and otherwise it searches one value at a time. The results are the same. A NaN gets bin
/// 0.
class CellSearch {
public:
    explicit CellSearch(const theory::Codebook& codebook);

    /// Finds index and level of the bin of each value. The three spans have the same length.
    void quantize(std::span<const float> values, std::span<std::uint8_t> cells, std::span<float> levels) const;

    // The following functions take column-major blocks with factors.size() rows; `block` and `cells` have the same
    // length, a multiple of this number.

    /// Finds the bins of entry (t, j) times factors[t].
    void find(std::span<const float> block, std::span<const float> factors, std::span<std::uint8_t> cells) const;
    /// Sets entry (t, j) to the level of its bin times factors[t].
    void set_levels(std::span<const std::uint8_t> cells, std::span<const float> factors, std::span<float> block) const;
    /// Adds the level of its bin times factors[t] to entry (t, j).
    void add_levels(std::span<const std::uint8_t> cells, std::span<const float> factors, std::span<float> block) const;

private:
    void make_grid();
    [[nodiscard]] std::size_t cell_of_one(float value) const;

    unsigned bits_;
    std::vector<float> thresholds_;
    std::vector<float> levels_;
    std::array<std::array<float, 8>, 4> tree_{};  ///< thresholds by depth, for up to 4 bits

    /// Intervals of one width with at most one threshold each, and the bin of their left ends. It is empty where
    /// thresholds lie too close together for a table.
    struct Grid {
        float first = 0.0F;
        float last = 0.0F;
        float per_unit = 0.0F;
        std::vector<std::uint8_t> cells;
    };
    Grid grid_;
};

}  // namespace spiked::estimators
