#pragma once
#include <cstddef>
#include <vector>

#include "validation/store/experiment.hpp"

namespace spiked::validation {

/// A cell and its value of the factor whose exponent is judged.
struct SizedCell {
    std::size_t cell = 0;  ///< position in Experiment::cells
    double size = 0.0;
};
/// Cells over which one exponent is fitted, by increasing size.
using SizeGroup = std::vector<SizedCell>;

/// The groups of the cells that a check with `exponent_of` applies to. Cells of one group agree in all other factors,
/// except for those that have one value for each size (as `d` where a sweep pairs `n` and `d`). Cells without a
/// positive number as their size are in no group.
[[nodiscard]] std::vector<SizeGroup> size_groups(const Check& check, const std::vector<ExperimentCell>& cells);

}  // namespace spiked::validation
