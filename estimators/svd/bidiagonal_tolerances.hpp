#pragma once

/// Tolerances for singular values and vectors of bidiagonal matrices, the same on CPU and GPU.
namespace spiked::estimators::bidiagonal {

inline constexpr double epsilon = 0x1p-53;

/// QL on B B^T leaves an error of a few epsilon in the squares of the values. Values below this fraction of the largest
/// one are therefore computed again by bisection.
inline constexpr double too_small_for_squares = 1e-3;

/// Vectors of values that differ by less than this fraction of the largest value are made orthogonal explicitly; all
/// others are computed independently.
template <class Real>
inline constexpr double close = sizeof(Real) == 8 ? 1e-2 : 1e-3;

/// Twisted factorisations separate the eigenvectors of plus and minus a value down to this fraction of the largest
/// value.
inline constexpr double smallest_for_twisted = 1e-9;

/// Residual, as a fraction of the largest value, below which no further round is needed.
template <class Real>
inline constexpr double good_residual = sizeof(Real) == 8 ? 16.0 * epsilon : 1e-9;

/// Largest residual that is accepted after the last round. Beyond it the vectors are computed by LAPACK.
inline constexpr double acceptable_residual = 1e-13;
inline constexpr int last_round = 3;

/// The right and the left half of an eigenvector have equal squared norms up to this fraction, unless the vectors of
/// plus and minus the value are mixed.
inline constexpr double unequal_halves = 1e-3;

/// Factors that widen upper bounds of values: the first for a bound that was computed with rounding, the second for the
/// limit below which values are computed again.
inline constexpr double rounded_bound = 1.0 + 8.0 * epsilon;
inline constexpr double generous_bound = 1.1;

/// Squared norms below this count as zero when a reflector is made, given a largest entry of about 1.
template <class Real>
inline constexpr double negligible_square = sizeof(Real) == 8 ? 1e-280 : 1e-32;

/// QL drops an off-diagonal entry whose square is below this fraction of the product of its neighbours. This moves no
/// value by more than the square root of this fraction.
template <class Real>
inline constexpr double negligible_link = sizeof(Real) == 8 ? epsilon* epsilon : 1e-18;

/// Smaller entries of a vector are set to zero: they would become denormal during the back-transformation, which is
/// slow.
inline constexpr double smallest_entry = 1e-30;

}  // namespace spiked::estimators::bidiagonal
