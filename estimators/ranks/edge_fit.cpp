#include "estimators/ranks/edge_fit.hpp"

#include <fmt/format.h>

#include <cmath>

namespace spiked::estimators {

std::vector<double> intercept_weights(std::size_t k) {
    std::vector<double> weight(2 * k);
    double x_sum = 0.0;
    double x_square_sum = 0.0;
    for (std::size_t j = 0; j < weight.size(); ++j) {
        weight[j] = std::pow(static_cast<double>(j) + 0.5, 2.0 / 3.0);
        x_sum += weight[j];
        x_square_sum += weight[j] * weight[j];
    }
    const double count = static_cast<double>(weight.size());
    for (double& x : weight) x = (x_square_sum - x_sum * x) / (count * x_square_sum - x_sum * x_sum);
    return weight;
}

std::string more_than_bound(std::span<const double> eigenvalues, std::size_t k, double margin, std::size_t bound) {
    const std::vector<double> weights = intercept_weights(k);
    const std::size_t within = fit_edge(weights, eigenvalues, margin, 2 * k).rank;
    if (within > bound)
        return fmt::format(
            "an edge fit finds {} components, more than the bound {} of this rule, which treats the rest as noise: "
            "eoptshrink:edgefit searches up to {}",
            within, bound, 2 * k);
    const std::size_t beyond = fit_edge(weights, eigenvalues, margin, eigenvalues.size() / 2).rank;
    if (beyond > 2 * k && beyond > bound)
        return fmt::format(
            "the spectrum has a step after component {}, beyond the bound {} of this rule: there may be that many "
            "signals, of which this rule may find none, or the noise may have several components",
            beyond, bound);
    return "";
}

}  // namespace spiked::estimators
