#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/text/enum_names.hpp"
#include "estimators/inference/estimated_noise.hpp"
#include "estimators/inference/noise_tails.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// How intervals are made: `theory` by the first-order fluctuations of outlier and overlaps over the estimated noise,
/// `bootstrap` by drawing the signal's vectors anew beside the estimated noise.
enum class IntervalMethod { theory, bootstrap, none };

struct Interval {
    double low = 0.0;
    double high = 0.0;
};

/// Intervals for one component: for its strength, and for the squared overlaps of its observed vectors with the true
/// ones, those of this block and not their limits. An interval that is missing has a reason.
struct SpikeIntervals {
    std::optional<Interval> strength;  ///< its low end is 0 where the block does not bound it from below
    std::optional<Interval> overlap_left;
    std::optional<Interval> overlap_right;
    std::string reason;  ///< why something is missing or one-sided; otherwise empty
};

/// Intervals for the components that an estimator found, from the spectrum of one block, at this confidence in (0, 1).
///
/// theory: the outlier of a spike of strength D has the deviation s(D) of theory::spike_variances on the curve of the
/// estimated noise. The strength interval holds all D whose outlier differs from the observed one by at most q s(D) on
/// the logarithmic scale, q the normal quantile, and is a point of the curve at both ends. The error of an estimated
/// overlap, which is a function of the outlier, against the overlap in this block has the variance
/// V_a - 2 g C + g^2 V_z (variances and covariance of log overlap and log outlier, g the slope of one in the other);
/// its interval is taken on the logistic scale, so that it stays within (0, 1).
///
/// With `tails` theory adds what the fourth cumulant of the entries adds to these variances (theory::kurtosis_effect),
/// where that makes them larger: the kurtosis of the entries behind the components, if it is above 0, and the fourth
/// powers of the observed vectors without what noise adds to them, (sum u^4 - 3/n)/c^2 + 3/n for the estimated overlap
/// c. The formula is that of white noise at the same place t of the curve, and at 1.2 thresholds where the curve is
/// below.
///
/// bootstrap: blocks with the estimated noise eigenvalues, Haar vectors and one spike of the estimated strength are
/// drawn `bootstrap_replicates` times. Their outliers and overlaps come from the secular equation of a perturbation of
/// rank one, so that no matrix is decomposed. The strength interval lies between the bias-corrected percentiles of the
/// strengths estimated from the draws (Efron 1981), the overlap intervals between the quantiles of true minus estimated
/// overlap on the logistic scale, added to the estimate. The draws are a function of the singular values alone.
///
/// Overlaps depend on the top of the noise law, which the estimator imputed or fitted: their intervals surround both
/// the reported estimate and the one over the observed eigenvalues behind the components. For the rest both methods
/// take the noise law as it was estimated, without an error of its own; both take the components one by one, with
/// vectors in general position to the noise. They give no interval, with a reason, where the outlier lies less than
/// `least_widths` Tracy-Widom scales above the edge (`least_overlap_widths` for overlaps), where first order fails, and
/// where another component is so near that their vectors mix (theory::separation_of_spikes). Where the lower end would
/// lie below these widths, the strength interval is one-sided.
///
/// Coverage: table in docs/METHODS.md. Cost: theory some hundred passes over the noise values for each
/// component; bootstrap some 15 ms for each component at 128 x 128, in proportion to n + d.
/// Returns one entry for each component, or nothing for `none`. Where no noise law is estimated (estimated_noise.hpp),
/// the reason says why. Source: ours; theory.md 1.2 for the fluctuations.
[[nodiscard]] std::optional<std::vector<SpikeIntervals>> spike_intervals(const Shrinkage& found,
                                                                         std::span<const double> singular_values,
                                                                         Shape shape, IntervalMethod method,
                                                                         double confidence,
                                                                         const std::optional<NoiseTails>& tails = {});

inline constexpr double least_widths = 2.0;
inline constexpr double least_overlap_widths = 6.0;
inline constexpr std::size_t bootstrap_replicates = 999;

/// The probability that white noise of the estimated level has a largest eigenvalue at least as large as the one behind
/// the components found, by the Tracy-Widom law for a block with as many rows and columns less: whether there is one
/// more component. It is conditional on the rank, which the same data chose: behind a test that has just stopped it
/// cannot be small, and behind a rule that counts too few components it always is. Nothing unless the estimator assumes
/// white noise with this law (`tw-test:null=signflip` and `null=kurtosis` have laws of their own), or where no value is
/// left. It is of its nominal size for Gaussian and lighter entries; heavy tails make
/// it too small (tracy_widom_rank.hpp). Cost: 2 ms.
[[nodiscard]] std::optional<double> next_component_p_value(const Shrinkage& found,
                                                           std::span<const double> singular_values, Shape shape);

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::IntervalMethod> {
    static constexpr EnumName<spiked::estimators::IntervalMethod> table[] = {
        {spiked::estimators::IntervalMethod::theory, "theory"},
        {spiked::estimators::IntervalMethod::bootstrap, "bootstrap"},
        {spiked::estimators::IntervalMethod::none, "none"}};
};
