#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

struct PolarquantOptions {
    RotationOptions rotation;
    ScalarOptions norms;
};

/// PolarQuant: groups of 16 coordinates of a rotated row in polar coordinates: angles of pairs of coordinates, then of
/// pairs of radii, in four levels, until one radius is left.
///
/// Source: Han et al., "PolarQuant", 2025. Angles of the first level are uniform in [-pi, pi): B bits; those of level
/// l = 2, 3, 4 lie in [0, pi/2] with density proportional to sin(2 a)^(2^(l-1) - 1) for normal coordinates: B - 2 bits,
/// at least 1, Lloyd-Max levels of that law. At B = 4 with fp16 radii: (8 4 + 4 2 + 2 2 + 1 2 + 16) / 16 = 3.875 bits
/// per entry. Remaining coordinates form one group, padded with zeros to a power of two. Stored: radii (format of the
/// options) row after row, then angles, row after row, group after group, level after level. Relative squared error for
/// normal coordinates: 2 - 2 times the product over levels of E cos(error of an angle). Not implemented: codebooks
/// fitted to the angles of a prompt by k-means.
[[nodiscard]] RowQuantizer polarquant(std::size_t dimension, unsigned bits, const PolarquantOptions& options);

}  // namespace spiked::estimators
