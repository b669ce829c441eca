#include "theory/laws/spike_clusters.hpp"

#include "core/runtime/error.hpp"
#include "theory/laws/finite_size.hpp"

namespace spiked::theory {
namespace {

/// The standard deviation of the strength at which the law has the observed outlier. Not finite at the threshold, where
/// the outlier does not move with the strength.
double strength_deviation(const SeparableLaw& law, const SpikePrediction& spike, std::size_t rows,
                          std::size_t columns) {
    const double z = spike.outlier.value;
    // T(z) d^2 = 1, so that dlog z / dlog d = 2 / K with K = -z T' / T.
    const double k = -z * spike.d_transform_derivative / spike.d_transform;
    return spike.strength.value * spike_fluctuation(law, spike.strength, rows, columns).outlier / z * k / 2.0;
}

}  // namespace

std::vector<SpikeCluster> spike_clusters(const SeparableLaw& law, std::span<const SignalStrength> strengths,
                                         std::size_t rows, std::size_t columns) {
    std::vector<SpikeCluster> clusters;
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        const bool detectable = law.spike(strengths[i]).detectable;
        bool separate = true;
        if (i > 0) {
            const SpikePrediction stronger = law.spike(strengths[i - 1]);
            const double distance = strengths[i - 1].value - strengths[i].value;
            if (distance < 0.0)
                throw usage_error("strength {} follows {}, which is smaller: give strengths largest first",
                                  strengths[i].value, strengths[i - 1].value);
            separate = !stronger.detectable ||
                       distance > separation_of_spikes * strength_deviation(law, stronger, rows, columns);
        }
        if (separate) {
            clusters.push_back({i, 1, detectable});
        } else {
            ++clusters.back().count;
            clusters.back().detectable = clusters.back().detectable && detectable;
        }
    }
    return clusters;
}

}  // namespace spiked::theory
