#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/edge_extrapolation.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::theory {

/// The behaviour of a rank rule that estimates the edge from the data, for one size: its average cutoff, computed from
/// the typical positions of the top eigenvalues.
struct EstimatedCutoff {
    Eigenvalue cutoff;                   ///< average cutoff under pure noise
    SignalStrength smallest_strength;    ///< smallest strength whose outlier reaches the cutoff, as the only spike
    double expected_false_alarms = 0.0;  ///< at that cutoff; the true mean is larger, because cutoffs vary by block
};

/// The cutoff above which one rank rule counts an eigenvalue as signal. All members but `estimated` assume that the
/// rule knows the edge.
struct RankCutoff {
    std::string name;
    Eigenvalue cutoff;                         ///< the rule counts eigenvalues of Z Z^T above this
    SignalStrength smallest_strength;          ///< smallest strength whose limiting outlier reaches the cutoff
    double false_alarm_probability = 0.0;      ///< that pure noise of this size has an eigenvalue above the cutoff
    double expected_false_alarms = 0.0;        ///< expected number of pure-noise eigenvalues above the cutoff
    std::optional<EstimatedCutoff> estimated;  ///< empty if the rule estimates no edge or the block is too small for it
};

/// Standard deviations of the observed outlier and overlaps of one spike over blocks of one size, to first order in
/// 1/sqrt(d). The singular vectors are Haar distributed (then the entry law of X does not matter). Near the threshold
/// the expansion diverges and is not valid.
struct SpikeFluctuation {
    SignalStrength strength;
    double outlier = 0.0;  ///< standard deviation of the observed eigenvalue
    double overlap_left = 0.0;
    double overlap_right = 0.0;
    bool reliable = false;  ///< whether the strength is at least (1 + d^(-1/3)) thresholds
};

/// Finite-size corrections to the asymptotic law for one size.
struct FiniteSize {
    std::size_t rows = 0;
    std::size_t columns = 0;
    double top_noise_shift = 0.0;               ///< mean of the top noise eigenvalue minus the edge; negative
    double top_noise_standard_deviation = 0.0;  ///< both in eigenvalue units
    std::optional<Eigenvalue> edge_estimate;    ///< what eOptShrink's edge estimator returns on average for pure noise
    std::vector<RankCutoff> rules;
    std::vector<SpikeFluctuation> spikes;  ///< of the detectable strengths, in the order given
    EdgeRegularity regularity;             ///< if not regular, none of the numbers above is reliable
};

/// The k of eOptShrink for p = min(n, d): floor(p^c) with c = min(1/2.01, 1/loglog p) (spectral.md 1.1). 0 for p < 3.
[[nodiscard]] std::size_t pilot_count(std::size_t side);
/// k limited to (p - 1)/2, p = min(n, d), because the edge estimate needs the (2k + 1)-th eigenvalue.
[[nodiscard]] std::size_t pilot_within(std::size_t k, std::size_t short_side);

/// First-order finite-size theory of n x d noise under `law` (research note theory.md C1, C6, C7): the top eigenvalue
/// is edge + TW1 / (g d^(2/3)); eigenvalues above a cutoff are counted by the limiting edge process, and by the
/// density inside the bulk. Rules, with p = min(n, d):
///   eoptshrink             eigenvalue / edge - 1 > p^(-1/3), edge from eigenvalues k + 1 and 2k + 1
///   eoptshrink:margin=0    the same without the margin
///   eoptshrink:edgefit     the same margin, edge from a line through the top 2k eigenvalues over (j - 1/2)^(2/3)
///   eoptshrink:paper       squares the eigenvalues first, margin d^(-1/3), k from d
///   eoptshrink:author      no margin, the distance between those two eigenvalues times 1.1
///   tw-test:level=L        above the upper L quantile of the top noise eigenvalue, for a known law
///   gd-hard, gd-shrink     Gavish and Donoho's threshold and the white edge, noise level from the median
///   screenot               Donoho, Gavish and Romanov's threshold for this law: where shrinkage exceeds one half
/// Under coloured noise the edge estimate is too low by 5 to 50 % at n = d = 128; `estimated` gives the consequences.
/// Throws usage_error when n/d is not the aspect of the law (1e-9), a size is 0, or level is outside (0, 1).
/// Accuracy of `estimated`: a few percent of the cutoff at p = 128. Cost: about 15 ms, nearly all of it quantiles.
[[nodiscard]] FiniteSize finite_size(const SeparableLaw& law, std::size_t rows, std::size_t columns,
                                     std::span<const SignalStrength> strengths = {}, double level = 0.01);

/// Fluctuation of one detectable spike. Throws usage_error at or below the threshold, and as above.
[[nodiscard]] SpikeFluctuation spike_fluctuation(const SeparableLaw& law, SignalStrength strength, std::size_t rows,
                                                 std::size_t columns);

struct TopNoiseQuantile {
    double probability = 0.0;
    double tracy_widom = 0.0;
    Eigenvalue eigenvalue;
};
/// Quantiles of the largest noise eigenvalue at that size, at 1, 5, 50, 95 and 99 %: the edge plus Tracy-Widom
/// quantiles in the scale of the law.
[[nodiscard]] std::vector<TopNoiseQuantile> top_noise_quantiles(const FiniteSize& finite, Eigenvalue edge);

}  // namespace spiked::theory
