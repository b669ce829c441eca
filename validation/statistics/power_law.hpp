#pragma once
#include <cstddef>
#include <limits>
#include <span>

namespace spiked::validation {

/// A positive number measured at x, with its standard error.
struct MeasuredPoint {
    double x = std::numeric_limits<double>::quiet_NaN();
    double y = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();
};

/// The power law y = exp(center_y) (x / exp(center_x))^exponent.
struct PowerLaw {
    double exponent = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();     ///< standard error of the exponent
    double center_x = std::numeric_limits<double>::quiet_NaN();  ///< natural logarithms of a point on the law
    double center_y = std::numeric_limits<double>::quiet_NaN();
    double chi_square = std::numeric_limits<double>::quiet_NaN();  ///< on points - 2 degrees of freedom
    std::size_t points = 0;                                        ///< number of fitted points
};

/// A deviation of fewer standard errors from zero has no usable logarithm.
inline constexpr double least_standard_errors = 2.0;

/// Least squares on the logarithms, weighted with their inverse variances to first order, (y / error)^2. Leaves out
/// points within least_standard_errors of zero, and those whose x, y or error is not above 0. Everything but the number
/// of points is NaN for fewer than three of them or where all have the same x.
[[nodiscard]] PowerLaw fit_power_law(std::span<const MeasuredPoint> points);

}  // namespace spiked::validation
