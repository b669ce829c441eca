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

/// The most that is let pass when the last round is over; else the vectors are LAPACK's.
inline constexpr double acceptable_residual = 1e-13;
inline constexpr int last_round = 3;

/// The halves of an eigenvector have equal squares, up to this share of one, unless the vectors of plus and minus the
/// value are mixed.
inline constexpr double unequal_halves = 1e-3;

/// What bounds of values are widened by: one that is computed, and one beyond which values are found again.
inline constexpr double rounded_bound = 1.0 + 8.0 * epsilon;
inline constexpr double generous_bound = 1.1;

/// Squares below this, beside a largest entry of about 1, are as good as zero in a reflector.
template <class Real>
inline constexpr double negligible_square = sizeof(Real) == 8 ? 1e-280 : 1e-32;

/// The square of an off-diagonal entry that QL drops, as a share of the product of its neighbours: it moves no value by
/// more than the root of this share.
template <class Real>
inline constexpr double negligible_link = sizeof(Real) == 8 ? epsilon* epsilon : 1e-18;

/// Smaller entries of a vector would become denormal on the way back, which is slow.
inline constexpr double smallest_entry = 1e-30;

}  // namespace spiked::estimators::bidiagonal
