#pragma once
#include <limits>
#include <span>

namespace spiked::theory {

/// The line y = y_mean + slope (x - x_mean).
struct LineFit {
    double slope = std::numeric_limits<double>::quiet_NaN();
    double x_mean = std::numeric_limits<double>::quiet_NaN();  ///< weighted mean of x
    double y_mean = std::numeric_limits<double>::quiet_NaN();  ///< weighted mean of y
    /// Sum of the weights times (x - x_mean)^2. If the weights are the inverse variances of independent y, the slope
    /// has the variance 1 / x_squares.
    double x_squares = 0.0;

    /// The value of the line at x = 0.
    [[nodiscard]] double intercept() const { return y_mean - slope * x_mean; }
};

/// The least-squares line: it minimises the sum of the weights times the squared distances in y. `x` and `y` have the
/// same length, and so have the weights, which are positive; without weights every point counts the same. Where all x
/// are equal, which includes fewer than two points, x_squares is 0 and the slope is NaN. Throws precondition_error for
/// different lengths.
///
/// Accuracy: the sums are taken about the means, so that a large mean of x or y costs no digits beyond those that its
/// own rounding takes from the distances to it. Cost: two passes over the points.
[[nodiscard]] LineFit fit_line(std::span<const double> x, std::span<const double> y,
                               std::span<const double> weights = {});

}  // namespace spiked::theory
