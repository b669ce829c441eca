#include "validation/metrics/estimate_measurement.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

namespace spiked::validation {
namespace {

/// The mean squared cosine and the largest of the principal angles, whose cosines are the singular values.
std::pair<double, double> principal_angles(const arma::mat& products) {
    const double least = std::min(1.0, arma::svd(products).min());
    return {arma::accu(arma::square(products)) / static_cast<double>(products.n_cols),
            180.0 / std::numbers::pi * std::acos(least)};
}

}  // namespace

SubspaceResult subspace_result(const theory::SpikeCluster& cluster, const std::vector<double>& values,
                               const arma::mat& left, const arma::mat& right) {
    SubspaceResult result{.first = cluster.first};
    const std::size_t end = cluster.first + cluster.count;
    if (left.n_cols < end || right.n_cols < end || values.size() < end) return result;
    const arma::span spikes(cluster.first, end - 1);
    std::tie(result.overlap_left, result.angle_left) = principal_angles(left(spikes, spikes));
    std::tie(result.overlap_right, result.angle_right) = principal_angles(right(spikes, spikes));
    result.outlier = 0.0;
    for (std::size_t i = cluster.first; i < end; ++i)
        result.outlier += values[i] * values[i] / static_cast<double>(cluster.count);
    return result;
}

void observe_sample(const SampleResult& sample, std::vector<Observation>& to) {
    for (std::size_t spike = 0; spike < sample.spikes; ++spike)
        observe_spike(&MetricMeasures::sample, sample, spike, 0, to);
}

void observe_estimate(const EstimateResult& estimate, std::size_t method, std::vector<Observation>& to) {
    const std::size_t components = estimate.sample.truth ? estimate.sample.spikes : estimate.rank;
    bool has_components = false;
    for (std::size_t m = 0; m < metrics().size(); ++m) {
        const auto& measure = metrics()[m].measure;
        if (measure.estimate)
            if (const auto value = measure.estimate(estimate)) to.push_back({method, m, 0, *value});
        // All metrics of components follow where the table has the first one, component by component.
        if (measure.component && !std::exchange(has_components, true))
            for (std::size_t component = 0; component < components; ++component)
                observe_spike(&MetricMeasures::component, estimate, component, method, to);
    }
}

}  // namespace spiked::validation
