#include "estimators/inference/spike_intervals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <string_view>

#include "core/runtime/error.hpp"
#include "estimators/inference/spike_bootstrap.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/root.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "theory/laws/tracy_widom.hpp"
#include "theory/laws/white_formulas.hpp"

namespace spiked::estimators {
namespace {

double logit(double x) { return std::log(x / (1.0 - x)); }
double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }
/// Estimates of overlaps may be 0 or 1, where the logistic scale ends.
double inside(double overlap) { return std::clamp(overlap, 1e-12, 1.0 - 1e-12); }

/// The number of deviations within which a normal variable lies at this confidence, also next to 1.
double normal_quantile(double confidence) {
    return boost::math::quantile(boost::math::complement(boost::math::normal(), 0.5 * (1.0 - confidence)));
}

/// The first-order effect of the kurtosis is not taken nearer to the threshold than this, where it fails.
constexpr double least_thresholds = 1.2;

/// The spectrum of a block as both methods use it.
struct Seen {
    const EstimatedNoise& noise;
    const EstimatedNoise& observed;  ///< the eigenvalues behind the components as they are
    Shape shape;
    double confidence;
    theory::NoiseEntries entries = {};  ///< of this component; Gaussian where nothing else is known

    [[nodiscard]] theory::SpikeVariances variances_at(const theory::SpikeCurve& curve) const {
        return theory::spike_variances(curve, {noise.eigenvalues.front()}, AspectRatio::of(shape.rows, shape.columns),
                                       shape.rows, shape.columns);
    }
    /// What the fourth cumulant of the entries adds to them.
    [[nodiscard]] theory::KurtosisEffect added_at(const theory::SpikeCurve& curve,
                                                  const theory::LogVariances& gaussian) const {
        if (entries.excess_kurtosis == 0.0) return {};
        const double root = std::sqrt(AspectRatio::of(shape.rows, shape.columns).value());
        const double largest = root / (least_thresholds * least_thresholds);  // t is root / thresholds^2
        return theory::kurtosis_effect(std::min(curve.t, largest), shape.rows, shape.columns, entries, gaussian);
    }
    [[nodiscard]] double deviation_at(double z) const {
        const theory::SpikeCurve curve = curve_at(noise, shape, {z});
        const theory::LogVariances gaussian = variances_at(curve).log;
        return std::sqrt(gaussian.outlier + std::max(0.0, added_at(curve, gaussian).outlier_variance));
    }
    [[nodiscard]] CurveEstimate over_observed(Eigenvalue z) const {
        return estimate_on(curve_at(observed, shape, z), shape);
    }
    /// The interval of an overlap with these errors on the logistic scale: around its estimate, and around the one over
    /// the observed eigenvalues. Where the two differ, the top of the law is unsure.
    [[nodiscard]] static Interval around(double estimate, double over_observed, Interval errors) {
        const double one = logit(inside(estimate));
        const double other = logit(inside(over_observed));
        return {logistic(std::min(one, other) + errors.low), logistic(std::max(one, other) + errors.high)};
    }
    /// The eigenvalue that many Tracy-Widom scales above the edge, and above all noise eigenvalues.
    [[nodiscard]] double bound(double widths) const {
        return std::max(noise.eigenvalues.front(), observed.eigenvalues.front()) + widths * noise.width;
    }
};

/// The estimates that one component's intervals surround.
struct Component {
    Eigenvalue outlier;
    double strength = 0.0;
    double overlap_left = 0.0;
    double overlap_right = 0.0;
};

/// The points of the curve whose outlier differs from the observed one by q deviations. The lower one is missing where
/// it would be too near the edge.
struct Ends {
    std::optional<double> low;
    double high = 0.0;
};

Ends ends_around(const Seen& seen, double z, double q) {
    const auto below = [&](double other) { return std::log(z / other) - q * seen.deviation_at(other); };
    const auto above = [&](double other) { return std::log(other / z) - q * seen.deviation_at(other); };
    const double bottom = seen.bound(least_widths);
    Ends ends;
    if (below(bottom) > 0.0) ends.low = theory::bracketed_root(below, bottom, z, theory::within(1e-10));
    double top = z * 1.5;
    while (above(top) < 0.0) top *= 2.0;
    ends.high = theory::bracketed_root(above, z, top, theory::within(1e-10));
    return ends;
}

/// The deviations of the errors of estimated overlaps on the logistic scale, at one point of the curve.
struct OverlapErrors {
    double left = 0.0;
    double right = 0.0;
};

OverlapErrors overlap_errors(const Seen& seen, double z) {
    const theory::SpikeCurve curve = curve_at(seen.noise, seen.shape, {z});
    const theory::SpikeVariances at = seen.variances_at(curve);
    const theory::KurtosisEffect added = seen.added_at(curve, at.log);
    const CurveEstimate estimate = estimate_on(curve, seen.shape);
    const auto square = [](double variance, double covariance, double of_outlier, double response) {
        return std::max(0.0, variance - 2.0 * response * covariance + response * response * of_outlier);
    };
    const auto deviation = [](double overlap, double gaussian, double more) {
        return std::sqrt(gaussian + more) / (1.0 - inside(overlap));
    };
    const double left = square(at.log.overlap_left, at.log.outlier_with_left, at.log.outlier, at.left_response);
    const double right = square(at.log.overlap_right, at.log.outlier_with_right, at.log.outlier, at.right_response);
    return {deviation(
                estimate.overlap_left, left,
                square(added.overlap_left_variance, added.outlier_with_left, added.outlier_variance, at.left_response)),
            deviation(estimate.overlap_right, right,
                      square(added.overlap_right_variance, added.outlier_with_right, added.outlier_variance,
                             at.right_response))};
}

/// The entries of the noise, and the fourth powers of the true vectors of one component.
theory::NoiseEntries entries_of(const NoiseTails& tails, std::size_t i, const Component& of, Shape shape) {
    const auto without_noise = [](double observed, double overlap, std::size_t size) {
        const double spread = 3.0 / static_cast<double>(size);
        return std::clamp(spread + (observed - spread) / std::pow(inside(overlap), 2), spread, 1.0);
    };
    return {.excess_kurtosis = tails.positive() ? tails.excess_kurtosis : 0.0,
            .left_fourth_powers = without_noise(tails.left_fourth_powers.at(i), of.overlap_left, shape.rows),
            .right_fourth_powers = without_noise(tails.right_fourth_powers.at(i), of.overlap_right, shape.columns)};
}

SpikeIntervals by_theory(const Seen& seen, const Component& of) {
    const double q = normal_quantile(seen.confidence);
    const double z = of.outlier.value;
    const double here = estimate_on(curve_at(seen.noise, seen.shape, {z}), seen.shape).strength;
    const auto strength_at = [&](double other) {
        return of.strength * estimate_on(curve_at(seen.noise, seen.shape, {other}), seen.shape).strength / here;
    };
    const Ends ends = ends_around(seen, z, q);
    SpikeIntervals found;
    found.strength = {ends.low ? strength_at(*ends.low) : 0.0, strength_at(ends.high)};
    const CurveEstimate observed = seen.over_observed(of.outlier);
    const OverlapErrors low = overlap_errors(seen, ends.low.value_or(seen.bound(least_widths)));
    const OverlapErrors high = overlap_errors(seen, ends.high);
    found.overlap_left = seen.around(of.overlap_left, observed.overlap_left, {-q * low.left, q * high.left});
    found.overlap_right = seen.around(of.overlap_right, observed.overlap_right, {-q * low.right, q * high.right});
    return found;
}

double quantile_of(const std::vector<double>& sorted, double probability) {
    const double place = probability * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t next = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[next] - sorted[below]);
}

/// The interval between the quantiles of the values at this confidence.
Interval middle(std::vector<double> values, double confidence) {
    std::sort(values.begin(), values.end());
    return {quantile_of(values, 0.5 - confidence / 2.0), quantile_of(values, 0.5 + confidence / 2.0)};
}

/// Efron's bias-corrected percentiles of draws whose true value is 0.
Interval bias_corrected(std::vector<double> draws, double confidence) {
    std::sort(draws.begin(), draws.end());
    const boost::math::normal law;
    const auto smaller = static_cast<double>(std::lower_bound(draws.begin(), draws.end(), 0.0) - draws.begin());
    const double shift = boost::math::quantile(law, (smaller + 0.5) / (static_cast<double>(draws.size()) + 1.0));
    const double q = normal_quantile(confidence);
    return {quantile_of(draws, boost::math::cdf(law, 2.0 * shift - q)),
            quantile_of(draws, boost::math::cdf(law, 2.0 * shift + q))};
}

SpikeIntervals by_bootstrap(const Seen& seen, const Component& of, const stream::Stream& stream) {
    const double here = estimate_on(curve_at(seen.noise, seen.shape, of.outlier), seen.shape).strength;
    std::vector<double> strengths, lefts, rights;
    const double bottom = seen.bound(least_widths);
    const double least = std::log(estimate_on(curve_at(seen.noise, seen.shape, {bottom}), seen.shape).strength / here);
    for (const BootstrapDraw& draw : bootstrap_spike(seen.noise, seen.shape, here, bootstrap_replicates, stream)) {
        const Eigenvalue z{std::max(draw.outlier.value, bottom)};
        const CurveEstimate estimate = estimate_on(curve_at(seen.noise, seen.shape, z), seen.shape);
        strengths.push_back(std::log(estimate.strength / here));
        lefts.push_back(logit(inside(draw.overlap_left)) - logit(inside(estimate.overlap_left)));
        rights.push_back(logit(inside(draw.overlap_right)) - logit(inside(estimate.overlap_right)));
    }
    SpikeIntervals found;
    const Interval ratio = bias_corrected(std::move(strengths), seen.confidence);
    found.strength = {ratio.low > least ? of.strength * std::exp(ratio.low) : 0.0, of.strength * std::exp(ratio.high)};
    const CurveEstimate observed = seen.over_observed(of.outlier);
    found.overlap_left = seen.around(of.overlap_left, observed.overlap_left, middle(lefts, seen.confidence));
    found.overlap_right = seen.around(of.overlap_right, observed.overlap_right, middle(rights, seen.confidence));
    return found;
}

}  // namespace

std::optional<std::vector<SpikeIntervals>> spike_intervals(const Shrinkage& found,
                                                           std::span<const double> singular_values, Shape shape,
                                                           IntervalMethod method, double confidence,
                                                           const std::optional<NoiseTails>& tails) {
    if (!(confidence > 0.0 && confidence < 1.0))
        throw usage_error("a confidence of {} is not possible: give a number between 0 and 1", confidence);
    if (method == IntervalMethod::none) return std::nullopt;
    std::vector<SpikeIntervals> intervals(found.rank);
    const auto without = [&](const std::string& reason) {
        for (SpikeIntervals& of : intervals) of.reason = reason;
        return intervals;
    };
    const auto noise = estimated_noise(found, shape);
    if (!noise) return without(why_no_noise(found, shape));
    EstimatedNoise observed = *noise;
    observed.eigenvalues.clear();
    for (const double value : singular_values.subspan(found.rank)) observed.eigenvalues.push_back(value * value);
    if (observed.eigenvalues.empty()) return without("no singular value is left for the noise");
    const Seen seen{*noise, observed, shape, confidence};
    const std::string_view bytes(reinterpret_cast<const char*>(singular_values.data()), singular_values.size_bytes());
    static const stream::StudySeed seed = stream::StudySeed::parse("0x5170");

    std::vector<double> deviations;
    for (std::size_t i = 0; i < found.rank; ++i) {
        const Eigenvalue z{std::max(singular_values[i] * singular_values[i], seen.bound(least_widths))};
        const theory::SpikeVariances at = seen.variances_at(curve_at(*noise, shape, z));
        deviations.push_back(found.strengths[i] * at.strength_response * std::sqrt(at.log.outlier));
    }
    for (std::size_t i = 0; i < found.rank; ++i) {
        SpikeIntervals& of = intervals[i];
        const Component component{{singular_values[i] * singular_values[i]},
                                  found.strengths[i],
                                  found.overlap_left[i],
                                  found.overlap_right[i]};
        const double widths = noise->widths_above(component.outlier);
        if (!(component.outlier.value > seen.bound(least_widths))) {
            of.reason = fmt::format("{:.2g} Tracy-Widom scales above the edge (at least {:g} are needed)", widths,
                                    least_widths);
            continue;
        }
        if (const auto other = theory::close_neighbour(found.strengths, deviations, i, theory::separation_of_spikes)) {
            of.reason = fmt::format("component {} is nearer than {:g} deviations of the strength: their vectors mix",
                                    *other + 1, theory::separation_of_spikes);
            continue;
        }
        Seen here = seen;
        if (tails) here.entries = entries_of(*tails, i, component, shape);
        of = method == IntervalMethod::theory
                 ? by_theory(here, component)
                 : by_bootstrap(seen, component, stream::Stream(seed, bytes, stream::Role::resampling, i));
        if (of.strength->low == 0.0)
            of.reason = "the strength is not bounded from below (the threshold is within its fluctuation)";
        if (component.outlier.value > seen.bound(least_overlap_widths)) continue;
        of.overlap_left = of.overlap_right = std::nullopt;
        of.reason += fmt::format("{}{:.2g} Tracy-Widom scales above the edge (overlaps need {:g})",
                                 of.reason.empty() ? "" : "; ", widths, least_overlap_widths);
    }
    return intervals;
}

std::optional<double> next_component_p_value(const Shrinkage& found, std::span<const double> singular_values,
                                             Shape shape) {
    if (!found.noise_level || !(*found.noise_level > 0.0) || !found.tracy_widom_null ||
        found.rank >= singular_values.size())
        return std::nullopt;
    const double rows = static_cast<double>(shape.rows - found.rank);
    const double columns = static_cast<double>(shape.columns - found.rank);
    const double beta = rows / columns;
    const double relative = singular_values[found.rank] / (*found.noise_level * std::sqrt(columns));
    const double scale = 1.0 / (theory::white::tracy_widom_scale(beta) * std::pow(columns, 2.0 / 3.0));
    const double tail = theory::tracy_widom_survival((relative * relative - theory::white::bulk_edge(beta)) / scale);
    return std::max(0.0, tail);  // not a rounding error below 0
}

}  // namespace spiked::estimators
