#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace spiked::estimators {

/// The ED estimator of the number of factors: near a regular edge noise eigenvalue j lies beta (j - 1)^(2/3) below it
/// whatever the covariances, so with beta from a line through five eigenvalues behind a supposed rank the rank is the
/// last place whose gap to the next is at least 2 |beta|. Begins behind the largest rank looked for and is repeated
/// behind the rank found, at most five times.
///
/// Source: Onatski, "Determining the number of factors from empirical distribution of eigenvalues", Review of Economics
/// and Statistics 92, 2010. Input: eigenvalues in any unit, descending. `cap`: the largest rank, 2k unless given (k as
/// in eOptShrink), and no more than leaves five eigenvalues behind the next. Equal eigenvalues are no gap, so a block
/// exactly of low rank has that rank. Cost O(cap).
[[nodiscard]] std::size_t eigenvalue_gap_rank(std::span<const double> eigenvalues, std::optional<std::size_t> cap = {});

}  // namespace spiked::estimators
