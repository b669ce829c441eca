#include "theory/laws/spike_clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "theory/laws/finite_size.hpp"

namespace spiked::theory {
namespace {

/// Standard deviations of T by which two spikes must differ to be separate in a gap, see gap_outliers.
constexpr double separation_in_gaps = 4.0;

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
    return distance > separation_of_spikes * of_deviation && !all_outliers(law.spike(weaker), SupportGaps(law)).empty();
}

}  // namespace

std::optional<std::size_t> close_neighbour(std::span<const double> values, std::span<const double> errors,
                                           std::size_t i, double separation) {
    for (const std::size_t j : {i - 1, i + 1})
        if (j < values.size() && std::abs(values[i] - values[j]) <= separation * errors[std::min(i, j)]) return j;
    return std::nullopt;
}

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

double outlier_deviation(const SpikePrediction& at, const SpikePrediction& weaker, const SpikePrediction& stronger,
                         std::size_t rows, std::size_t columns) {
    const double z = at.outlier.value;
    const double left = at.stieltjes_left;
    const double right = at.stieltjes_right;
    const double step = stronger.outlier.value - weaker.outlier.value;
    const double left_slope = (stronger.stieltjes_left - weaker.stieltjes_left) / step;
    const double right_slope = (stronger.stieltjes_right - weaker.stieltjes_right) / step;
    const double d = static_cast<double>(columns);
    const double of_noise = 4.0 * at.d_transform * (left + z * left_slope) / d;
    const double of_sides = 2.0 * (left_slope / (left * left) - 1.0) / static_cast<double>(rows) +
                            2.0 * (right_slope / (right * right) - 1.0) / d;
    return std::sqrt(of_noise + at.d_transform * at.d_transform * of_sides) / std::abs(at.d_transform_derivative);
}

std::vector<GapOutlier> gap_outliers(const SeparableLaw& law, const SupportGaps& outside,
                                     std::span<const SignalStrength> strengths, std::size_t rows, std::size_t columns) {
    constexpr double step = 1e-4;  // of a strength, for slopes
    std::vector<GapOutlier> found;
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        const auto outliers = all_outliers(law.spike(strengths[i]), outside);
        if (outliers.empty() || !outliers.front().gap) continue;
        GapOutlier one{.spike = i, .gap = *outliers.front().gap, .prediction = outliers.front().prediction};
        const double above = outside.gaps()[one.gap].mass_above * static_cast<double>(rows);
        one.index = static_cast<std::size_t>(std::lround(above)) + i;
        if (one.index >= std::min(rows, columns)) continue;
        const auto weaker = outside.spike(one.gap, {(1.0 - step) * strengths[i].value});
        const auto stronger = outside.spike(one.gap, {(1.0 + step) * strengths[i].value});
        one.deviation = weaker && stronger ? outlier_deviation(one.prediction, *weaker, *stronger, rows, columns)
                                           : std::numeric_limits<double>::quiet_NaN();
        const double of_transform = std::abs(one.prediction.d_transform_derivative) * one.deviation;
        for (std::size_t j = 0; j < strengths.size(); ++j) {
            if (j == i) continue;
            const double distance = std::abs(reciprocal_square(strengths[j]) - reciprocal_square(strengths[i]));
            // False where the deviation is not a number.
            one.separate = one.separate && distance > separation_in_gaps * of_transform;
        }
        found.push_back(one);
    }
    return found;
}

}  // namespace spiked::theory
