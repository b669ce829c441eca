#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace spiked::estimators {

/// Replaces the k largest of descending values by what a square-root edge would put there: with x the values, counted
/// from 1, value l becomes x_(k+1) + (1 - ((l - 1 + shift) / k)^(2/3)) / (2^(2/3) - 1) (x_(k+1) - x_(2k+1)). Needs at
/// least 2k + 1 values; k = 0 changes nothing. The scale, singular values or eigenvalues, is the caller's.
/// Source: ScreeNOT (Donoho, Gavish and Romanov); eOptShrink Step 2 with shift 1.
[[nodiscard]] std::vector<double> impute_top(std::span<const double> values, std::size_t k, double shift);

}  // namespace spiked::estimators
