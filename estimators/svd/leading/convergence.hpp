#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace spiked::estimators {

/// Foresees whether an iteration ends while it costs less than a decomposition of the whole.
///
/// Logarithms of residuals fall slowly at first, then faster and faster, and at last at a constant rate. The end is
/// foretold by twice the rate over the last 30 % of the dimension; bench/README.md has what this saves.
class ConvergenceForecast {
public:
    explicit ConvergenceForecast(std::size_t short_side) : short_side_(short_side) {}

    /// The largest dimension, at which the iteration costs 0.6 to 1 times a decomposition.
    [[nodiscard]] std::size_t most_dimension() const { return short_side_ / 4; }
    /// To be called with rising dimensions: the largest residual over the one at which the iteration ends.
    void add(std::size_t dimension, double excess);
    /// Whether the iteration is expected to end beyond most_dimension; never before a twelfth of the short side.
    [[nodiscard]] bool too_late() const;

private:
    std::size_t short_side_;
    std::vector<std::pair<double, double>> logarithms_;  ///< by dimension
};

}  // namespace spiked::estimators
