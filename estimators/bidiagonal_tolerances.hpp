#pragma once

/// What counts as small, close or good in finding singular values and vectors of a bidiagonal matrix: the same on CPU
/// and GPU.
namespace spiked::estimators::bidiagonal {

inline constexpr double epsilon = 0x1p-53;

/// QL on B B^T leaves an error of a few epsilon in squares; below this share of the largest value it is found again.
inline constexpr double too_small_for_squares = 1e-3;

/// Vectors of values closer than this share of the largest one are made orthogonal; the others are by themselves.
template <class Real>
inline constexpr double close = sizeof(Real) == 8 ? 1e-2 : 1e-3;

/// The eigenvectors of plus and minus a value are told apart down to here.
inline constexpr double smallest_for_twisted = 1e-9;

/// What may be missed of value times vector, as a share of the largest value, before another round.
template <class Real>
inline constexpr double good_residual = sizeof(Real) == 8 ? 16.0 * epsilon : 1e-9;

/// The square of an off-diagonal entry that QL drops, as a share of the product of its neighbours: it moves no value by
/// more than the root of this share.
template <class Real>
inline constexpr double negligible_link = sizeof(Real) == 8 ? epsilon* epsilon : 1e-18;

/// Smaller entries of a vector would become denormal on the way back, which is slow.
inline constexpr double smallest_entry = 1e-30;

}  // namespace spiked::estimators::bidiagonal
