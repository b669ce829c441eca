#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/device/host_device.hpp"

namespace spiked::estimators {

/// Rank and bulk edge from a line fitted to the top of the noise spectrum.
struct EdgeFit {
    std::size_t rank = 0;
    double edge = 0.0;  ///< eigenvalue, on the scale of the input
};

/// The 2k weights whose weighted sum of y_0..y_(2k-1) is the intercept of the least-squares line through (x_j, y_j)
/// with x_j = (j + 1/2)^(2/3).
[[nodiscard]] std::vector<double> intercept_weights(std::size_t k);

[[nodiscard]] SPIKED_DEVICE inline double weighted_sum(std::span<const double> weights,
                                                       std::span<const double> values) {
    double sum = 0.0;
    for (std::size_t j = 0; j < weights.size(); ++j) sum += weights[j] * values[j];
    return sum;
}

/// Backward scan for the rank: near a regular edge the j-th noise eigenvalue lies C (j - 1/2)^(2/3) below it, so a line
/// through the 2k eigenvalues behind a supposed rank r has the edge as its intercept. From r = most down to 1, the
/// first r whose eigenvalue exceeds (1 + margin) times the intercept is the rank. Unlike an edge extrapolated from two
/// fixed positions, it still works when there are more than k signals. `most` should not exceed 2k, because noise of
/// several components has steps of its own in its spectrum.
///
/// Source: ours, after the rank rule of eOptShrink. `weights` come from intercept_weights(k); the eigenvalues are
/// descending. With fewer than 2k + 1 of them the result is rank 0 and edge 0. Cost O(k most).
[[nodiscard]] SPIKED_DEVICE inline EdgeFit fit_edge(std::span<const double> weights,
                                                    std::span<const double> eigenvalues, double margin,
                                                    std::size_t most) {
    if (weights.empty() || eigenvalues.size() < weights.size() + 1) return {};
    for (std::size_t rank = std::min(most, eigenvalues.size() - weights.size()); rank > 0; --rank) {
        const double edge = weighted_sum(weights, eigenvalues.subspan(rank));
        if (eigenvalues[rank - 1] > (1.0 + margin) * edge) return {rank, edge};
    }
    return {0, weighted_sum(weights, eigenvalues)};
}

/// The intercept of the same line behind a given rank, which is reduced where it leaves fewer than 2k eigenvalues.
[[nodiscard]] SPIKED_DEVICE inline EdgeFit edge_behind(std::span<const double> weights,
                                                       std::span<const double> eigenvalues, std::size_t rank) {
    if (weights.empty() || eigenvalues.size() < weights.size() + 1) return {};
    rank = std::min(rank, eigenvalues.size() - weights.size());
    return {rank, weighted_sum(weights, eigenvalues.subspan(rank))};
}

/// A message when more components stand out of these eigenvalues than a rule with the bound `bound` can find (it then
/// treats signals as noise and may find none at all); empty otherwise. `margin` is that of fit_edge.
[[nodiscard]] std::string more_than_bound(std::span<const double> eigenvalues, std::size_t k, double margin,
                                          std::size_t bound);

}  // namespace spiked::estimators
