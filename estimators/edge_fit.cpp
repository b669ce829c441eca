#include "estimators/edge_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace spiked::estimators {

namespace {

/// The intercept of least squares through values y_0..y_(2k-1) over (j + 1/2)^(2/3), as a weighted sum of them.
std::vector<double> intercept_weights(std::size_t window) {
    std::vector<double> weight(window);
    double x_sum = 0.0;
    double x_square_sum = 0.0;
    for (std::size_t j = 0; j < window; ++j) {
        weight[j] = std::pow(static_cast<double>(j) + 0.5, 2.0 / 3.0);
        x_sum += weight[j];
        x_square_sum += weight[j] * weight[j];
    }
    const double count = static_cast<double>(window);
    for (double& x : weight) x = (x_square_sum - x_sum * x) / (count * x_square_sum - x_sum * x_sum);
    return weight;
}

double weighted_sum(const std::vector<double>& weight, std::span<const double> values) {
    double sum = 0.0;
    for (std::size_t j = 0; j < weight.size(); ++j) sum += weight[j] * values[j];
    return sum;
}

}  // namespace

EdgeFit fit_edge(std::span<const double> eigenvalues, std::size_t k, double margin, std::size_t most) {
    const std::size_t window = 2 * k;
    if (k == 0 || eigenvalues.size() < window + 1) return {};
    const std::vector<double> weight = intercept_weights(window);
    for (std::size_t rank = std::min(most, eigenvalues.size() - window); rank > 0; --rank) {
        const double edge = weighted_sum(weight, eigenvalues.subspan(rank));
        if (eigenvalues[rank - 1] > (1.0 + margin) * edge) return {rank, edge};
    }
    return {0, weighted_sum(weight, eigenvalues)};
}

EdgeFit edge_behind(std::span<const double> eigenvalues, std::size_t k, std::size_t rank) {
    const std::size_t window = 2 * k;
    if (k == 0 || eigenvalues.size() < window + 1) return {};
    rank = std::min(rank, eigenvalues.size() - window);
    return {rank, weighted_sum(intercept_weights(window), eigenvalues.subspan(rank))};
}

std::string more_than_bound(std::span<const double> eigenvalues, std::size_t k, double margin, std::size_t bound) {
    const std::size_t within = fit_edge(eigenvalues, k, margin, 2 * k).rank;
    if (within > bound)
        return fmt::format(
            "an edge fit sees {} components, more than the bound {} of this rule, which takes the rest "
            "for noise: eoptshrink:edgefit searches to {}",
            within, bound, 2 * k);
    const std::size_t beyond = fit_edge(eigenvalues, k, margin, eigenvalues.size() / 2).rank;
    if (beyond > 2 * k && beyond > bound)
        return fmt::format(
            "the spectrum falls in a step after component {}, beyond the bound {} of this rule: either "
            "so many signals, of which it may see none, or noise of several parts",
            beyond, bound);
    return "";
}

}  // namespace spiked::estimators
