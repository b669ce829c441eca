#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/edge_extrapolation.hpp"
#include "theory/laws/entry_kurtosis.hpp"
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
/// 1/sqrt(d). Near the threshold the expansion diverges and is not valid, for the overlaps farther away than for the
/// outlier. Measured over predicted deviation of the overlaps at 1 + c d^(-1/3) thresholds, white Gaussian noise, n = d
/// (6000 blocks at d = 64 and 128, 2500 at 512; relative error of the ratios 1 to 1.5 %; the same ratio of the outlier
/// is .95 to 1.01 for all of these):
///     c          1     1.5   2     2.5   3     3.5   4     5
///     d = 64     .90   1.12  1.15  1.12  1.04  1.04  1.01  .99
///     d = 128    .90   1.14  1.16  1.08  1.05  1.06  1.01  1.02
///     d = 512    .89   1.11  1.16  1.07  1.09  1.02  1.03  1.03
///
/// Entries: without an excess kurtosis k the formulas hold for Gaussian entries, any separable noise and Haar vectors.
/// For every other entry law with enough moments the limit of sqrt(d) times the deviations is the same with Haar
/// vectors, but the variances approach it as 1 + O(k/d), which is far away at usual sizes. Under white noise
/// `NoiseEntries` adds that term (entry_kurtosis.hpp), which explains sparse and skewed entries. It does not explain
/// student:5: an entry of size s sqrt(d) is a spike of strength s, and in 1.5 % of blocks of 128 x 128 one is larger
/// than the spike of strength 2 below, whose overlaps are then 0.
/// Measured over predicted deviation of outlier, overlaps for white noise, n = d, strength 2, and in brackets over the
/// formula without k (study `entry-laws`; relative error of these ratios 1 % at d = 128 and 4 % at 512; above 4 the
/// deviation is that of few blocks):
///                       k     d = 128                     d = 512
///     gaussian          0     1.01, 1.01                  0.99, 1.01
///     rademacher       -2     1.00, 1.01 (0.99, 0.98)     1.06, 1.03 (1.06, 1.02)
///     uniform          -1.2   0.99, 1.00 (0.98, 0.98)     1.00, 1.02 (1.00, 1.02)
///     laplace           3     1.00, 1.02 (1.01, 1.06)     1.00, 1.07 (1.01, 1.08)
///     two-point:0.05   15.1   1.00, 1.03 (1.05, 1.21)     1.05, 1.01 (1.06, 1.06)
///     sparse:0.05      17     1.02, 1.05 (1.08, 1.25)     1.06, 1.03 (1.08, 1.08)
///     student:5         6     1.69, 2.36 (1.73, 2.53)     5.5, 4.5 (5.6, 4.5)
struct SpikeFluctuation {
    SignalStrength strength;
    double outlier = 0.0;  ///< standard deviation of the observed eigenvalue
    double overlap_left = 0.0;
    double overlap_right = 0.0;
    /// Whether first order describes the outlier of blocks of this size: the strength is at least (1 + d^(-1/3))
    /// thresholds, and k adds less to the variance than the rest.
    bool reliable = false;
    /// The same of the overlaps, from (1 + 3.5 d^(-1/3)) thresholds on.
    bool reliable_overlaps = false;
    LogVariances gaussian;      ///< without the effect of k
    KurtosisEffect of_entries;  ///< the effect of k; the deviations above include it
};

/// Finite-size corrections to the asymptotic law for one size.
struct FiniteSize {
    std::size_t rows = 0;
    std::size_t columns = 0;
    Field field = Field::real;
    double top_noise_shift = 0.0;               ///< mean of the top noise eigenvalue minus the edge
    double top_noise_standard_deviation = 0.0;  ///< both in eigenvalue units
    double kurtosis_shift = 0.0;                ///< kurtosis_edge_shift, included in the first and in all that follows
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
/// is edge + TW1 / (g d^(2/3)), TW2 for complex entries; eigenvalues above a cutoff are counted by the limiting edge
/// process, and by the density inside the bulk. Rules, with p = min(n, d):
///   eoptshrink             eigenvalue / edge - 1 > p^(-1/3), edge from eigenvalues k + 1 and 2k + 1
///   eoptshrink:margin=0    the same without the margin
///   eoptshrink:edgefit     the same margin, edge from a line through the top 2k eigenvalues over (j - 1/2)^(2/3)
///   eoptshrink:paper       squares the eigenvalues first, margin d^(-1/3), k from d
///   eoptshrink:author      no margin, the distance between those two eigenvalues times 1.1
///   tw-test:level=L        above the upper L quantile of the top noise eigenvalue, for a known law
///   gd-hard, gd-shrink     Gavish and Donoho's threshold and the white edge, noise level from the median
///   screenot               Donoho, Gavish and Romanov's threshold for this law: where shrinkage exceeds one half
/// Under coloured noise the edge estimate is too low by 5 to 50 % at n = d = 128; `estimated` gives the consequences.
/// `entries` shifts the noise eigenvalues near the edge (kurtosis_shift_at), but not the edge that rules know, so
/// that false alarms are those of the rules under these entries. Measured (predicted) probability that white noise
/// exceeds the Tracy-Widom 99 % point at d = 128, 4000 blocks: gaussian .006 (.010), rademacher .0015 (.003), uniform
/// .004
/// (.005), laplace .054 (.044), student:5 .25 (.15, without its large entries), two-point:0.05 .60 (.89), sparse:0.05
/// .67
/// (.96): the shift is right to first order in k d^(-1/3), and too large for the last two. The edge that eoptshrink
/// estimates, from eigenvalues farther in, moves less: measured (predicted) mean for laplace 2.601(3) (2.62) at 64 x
/// 160, for sparse:0.05 2.797(5) (2.88) there and 4.073(9) (4.14) at 128 x 128. Throws usage_error when n/d is not the
/// aspect of the law (1e-9), a size is 0, level is outside (0, 1), or the entries have an excess kurtosis and are
/// complex or the law is not white. Accuracy of `estimated`: a few percent of the cutoff at p = 128. Cost: about 15 ms,
/// nearly all of it quantiles.
[[nodiscard]] FiniteSize finite_size(const SeparableLaw& law, std::size_t rows, std::size_t columns,
                                     std::span<const SignalStrength> strengths = {}, double level = 0.01,
                                     const NoiseEntries& entries = {});

/// Variances of the logarithms of one spike's outlier and overlaps under Gaussian entries and Haar vectors, and the
/// slopes of the logarithms of strength and overlaps in the logarithm of the outlier, which turn an error of the
/// outlier into one of what is computed from it.
struct SpikeVariances {
    LogVariances log;
    double strength_response = 0.0;
    double left_response = 0.0;
    double right_response = 0.0;
};

/// The same from a point of the curve, whatever law it belongs to: that of a SeparableLaw, or that of the eigenvalues
/// of one matrix. `edge` is the largest eigenvalue of the law, `aspect` rows over columns. Cost: a few hundred
/// operations.
[[nodiscard]] SpikeVariances spike_variances(const SpikeCurve& curve, Eigenvalue edge, AspectRatio aspect,
                                             std::size_t rows, std::size_t columns);

/// Fluctuation of one detectable spike. Of complex entries every variance is half of that of real ones: the forms that
/// it consists of are sums over twice as many independent numbers. Throws usage_error at or below the threshold, and as
/// above.
[[nodiscard]] SpikeFluctuation spike_fluctuation(const SeparableLaw& law, SignalStrength strength, std::size_t rows,
                                                 std::size_t columns, const NoiseEntries& entries = {});

struct TopNoiseQuantile {
    double probability = 0.0;
    double tracy_widom = 0.0;
    Eigenvalue eigenvalue;
};
/// Quantiles of the largest noise eigenvalue at that size, at 1, 5, 50, 95 and 99 %: the edge plus Tracy-Widom
/// quantiles in the scale of the law.
[[nodiscard]] std::vector<TopNoiseQuantile> top_noise_quantiles(const FiniteSize& finite, Eigenvalue edge);

}  // namespace spiked::theory
