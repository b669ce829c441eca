#include "theory/laws/spike_clusters.hpp"

#include "core/runtime/error.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/support_gaps.hpp"

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

/// 1 / strength^2, which is T at the outlier of the spike.
double reciprocal_square(SignalStrength strength) { return 1.0 / (strength.value * strength.value); }

/// Whether a spike below the detection threshold has its outlier in a gap, and so little to do with the outlier of a
/// stronger one above the top edge that their vectors do not mix. `deviation` is that of the stronger one's strength.
bool apart_in_a_gap(const SeparableLaw& law, SignalStrength stronger, SignalStrength weaker, double deviation) {
    const double distance = reciprocal_square(weaker) - reciprocal_square(stronger);
    const double of_deviation = 2.0 * reciprocal_square(stronger) * deviation / stronger.value;
    return distance > separation_of_spikes * of_deviation && !all_outliers(law, SupportGaps(law), weaker).empty();
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
            if (stronger.detectable) {
                const double deviation = strength_deviation(law, stronger, rows, columns);
                separate = distance > separation_of_spikes * deviation ||
                           (!detectable && apart_in_a_gap(law, strengths[i - 1], strengths[i], deviation));
            }
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
