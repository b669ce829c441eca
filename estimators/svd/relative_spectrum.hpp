#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/device/host_device.hpp"
#include "estimators/svd/shape.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::estimators {

/// A singular value divided by the largest one, `unit`. Values within rounding error of 0, long side times epsilon,
/// become 0.
[[nodiscard]] SPIKED_DEVICE inline double relative_value(double value, double unit, std::size_t long_side) {
    const double floor = static_cast<double>(long_side) * 0x1p-52;
    const double relative = value / unit;
    return relative > floor ? relative : 0.0;
}

/// The singular values of a block: as given, divided by the largest one (`unit`), and the squares of the latter.
struct RelativeValues {
    double unit = 0.0;
    std::span<const double> observed;
    std::span<const double> values;
    std::span<const double> eigenvalues;
};

/// The singular values of a block divided by the largest one, so that squares neither overflow nor underflow at any
/// scale of double. Values within rounding error of 0, long side times epsilon, become 0.
struct RelativeSpectrum {
    /// Throws precondition_error when there are not min(n, d) values or they are not in descending order, and
    /// input_error when a value is negative, NaN or infinite.
    RelativeSpectrum(std::span<const double> singular_values, Shape shape);

    Shape shape;
    double unit = 0.0;                ///< the largest singular value; 0: the block is zero or empty
    std::vector<double> observed;     ///< as given
    std::vector<double> values;       ///< divided by the largest, descending
    std::vector<double> eigenvalues;  ///< their squares
    std::size_t above_rounding = 0;   ///< number of nonzero values

    [[nodiscard]] std::size_t size() const { return values.size(); }
    [[nodiscard]] RelativeValues relative() const { return {unit, observed, values, eigenvalues}; }
    /// An eigenvalue in the scale of the block itself; nothing when it overflows or underflows there.
    [[nodiscard]] std::optional<Eigenvalue> eigenvalue(double relative) const;
};

}  // namespace spiked::estimators
