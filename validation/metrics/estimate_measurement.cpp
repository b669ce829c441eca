#include "validation/metrics/estimate_measurement.hpp"

#include <utility>

namespace spiked::validation {

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
