#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/device/host_device.hpp"
#include "estimators/svd/shape.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::estimators {

/// A singular value in units of the largest; within rounding of 0, long side times epsilon, it is 0.
[[nodiscard]] SPIKED_DEVICE inline double relative_value(double value, double unit, std::size_t long_side) {
    const double floor = static_cast<double>(long_side) * 0x1p-52;
    const double relative = value / unit;
    return relative > floor ? relative : 0.0;
}

/// A block's singular values as given, in units of the largest, and the squares of these.
struct RelativeValues {
    double unit = 0.0;
    std::span<const double> observed;
    std::span<const double> values;
    std::span<const double> eigenvalues;
};

/// The singular values of a block in units of the largest, so that squares neither overflow nor vanish at any scale a
/// double has. Values within rounding of 0, long side times epsilon, are 0.
struct RelativeSpectrum {
    /// Throws bug when there are not min(n, d) values or they do not descend, input_error when one is no number of at
    /// least 0.
    RelativeSpectrum(std::span<const double> singular_values, Shape shape);

    Shape shape;
    double unit = 0.0;                ///< the largest singular value; 0: the block is zero or empty
    std::vector<double> observed;     ///< as given
    std::vector<double> values;       ///< in units of the largest, descending
    std::vector<double> eigenvalues;  ///< their squares
    std::size_t above_rounding = 0;

    [[nodiscard]] std::size_t size() const { return values.size(); }
    [[nodiscard]] RelativeValues relative() const { return {unit, observed, values, eigenvalues}; }
    /// Back in the block's own units; nothing when the square is no double there.
    [[nodiscard]] std::optional<Eigenvalue> eigenvalue(double relative) const;
};

}  // namespace spiked::estimators
