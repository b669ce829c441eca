#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace spiked::estimators {

/// The ED estimator of the number of factors. Near a regular edge noise eigenvalue j lies beta (j - 1)^(2/3) below it,
/// whatever the covariances are. With beta from a line through the five eigenvalues behind a supposed rank, the rank is
/// the last position whose gap to the next eigenvalue is at least 2 |beta|. The search starts with the largest allowed
/// rank and is repeated with the rank found, at most five times.
///
/// Source: Onatski, "Determining the number of factors from empirical distribution of eigenvalues", Review of Economics
/// and Statistics 92, 2010. Input: eigenvalues on any scale, descending. `cap`: the largest rank, 2k by default (k as
/// in eOptShrink), reduced where fewer than five eigenvalues would be left. Equal eigenvalues have no gap, so a block
/// that is exactly of low rank has that rank. Cost O(cap).
[[nodiscard]] std::size_t eigenvalue_gap_rank(std::span<const double> eigenvalues, std::optional<std::size_t> cap = {});

}  // namespace spiked::estimators
