#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace spiked::estimators {

/// Foresees whether an iteration ends while it costs less than a decomposition of the whole.
///
/// Logarithms of residuals fall the faster with the dimension the more of the space around the values is known: at the
/// same rate at the end, at a slowly rising one before. The rate of the last quarter of the steps, twice, therefore
/// predicts the end; measured predictions and what they save are in bench/README.md.
class ConvergenceForecast {
public:
    explicit ConvergenceForecast(std::size_t short_side) : short_side_(short_side) {}

    /// The largest dimension, at which a decomposition costs as much or little more.
    [[nodiscard]] std::size_t most_dimension() const { return short_side_ / 3; }
    /// To be called with rising dimensions: the largest residual over the one at which the iteration ends.
    void add(std::size_t dimension, double excess);
    /// Whether the iteration is expected to end beyond most_dimension; never before a tenth of the short side.
    [[nodiscard]] bool too_late() const;

private:
    std::size_t short_side_;
    std::vector<std::pair<double, double>> logarithms_;  ///< by dimension
};

}  // namespace spiked::estimators
