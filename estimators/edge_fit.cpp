#include "estimators/edge_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace spiked::estimators {

EdgeFit fit_edge(std::span<const double> eigenvalues, std::size_t k, double margin, std::size_t most) {
    const std::size_t window = 2 * k;
    if (k == 0 || eigenvalues.size() < window + 1) return {};
    std::vector<double> weight(window);  // the intercept of least squares is a weighted sum
    double x_sum = 0.0;
    double x_square_sum = 0.0;
    for (std::size_t j = 0; j < window; ++j) {
        weight[j] = std::pow(static_cast<double>(j) + 0.5, 2.0 / 3.0);
        x_sum += weight[j];
        x_square_sum += weight[j] * weight[j];
    }
    const double count = static_cast<double>(window);
    for (double& x : weight) x = (x_square_sum - x_sum * x) / (count * x_square_sum - x_sum * x_sum);
    const auto edge_behind = [&](std::size_t rank) {
        double sum = 0.0;
        for (std::size_t j = 0; j < window; ++j) sum += weight[j] * eigenvalues[rank + j];
        return sum;
    };
    for (std::size_t rank = std::min(most, eigenvalues.size() - window); rank > 0; --rank) {
        const double edge = edge_behind(rank);
        if (eigenvalues[rank - 1] > (1.0 + margin) * edge) return {rank, edge};
    }
    return {0, edge_behind(0)};
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
