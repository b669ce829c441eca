#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace spiked::estimators {

/// What a line through the top of the noise says about rank and edge.
struct EdgeFit {
    std::size_t rank = 0;
    double edge = 0.0;  ///< eigenvalue, in the units of the input
};

/// Backward scan for the rank: near a regular edge the j-th noise eigenvalue lies C (j - 1/2)^(2/3) below it, so a line
/// through 2k eigenvalues behind a supposed rank r has the edge as its intercept. From r = most down to 1, the first r
/// whose eigenvalue exceeds (1 + margin) times the intercept is the rank. Unlike an edge read off two fixed positions
/// it is not blinded by more than k signals. `most` should not pass 2k: noise of several parts has steps of its own.
///
/// Source: ours, after the rank rule of eOptShrink. eigenvalues: descending; fewer than 2k + 1 of them: rank 0, edge 0.
/// Cost O(k most).
[[nodiscard]] EdgeFit fit_edge(std::span<const double> eigenvalues, std::size_t k, double margin, std::size_t most);

/// The same line behind a rank that is told, at most what leaves 2k eigenvalues.
[[nodiscard]] EdgeFit edge_behind(std::span<const double> eigenvalues, std::size_t k, std::size_t rank);

/// A sentence when more components stand out of these eigenvalues than a rule with bound `bound` can see (it then takes
/// signals for noise and may find none at all); empty otherwise. k and margin as in fit_edge.
[[nodiscard]] std::string more_than_bound(std::span<const double> eigenvalues, std::size_t k, double margin,
                                          std::size_t bound);

}  // namespace spiked::estimators
