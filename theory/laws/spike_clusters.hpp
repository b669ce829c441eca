#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "theory/laws/separable_law.hpp"
#include "theory/laws/support_gaps.hpp"

namespace spiked::theory {

/// Standard deviations of the stronger spike's estimated strength by which two strengths must differ for the law's
/// predictions about each of the two to hold. See spike_clusters.
inline constexpr double separation_of_spikes = 6.0;

/// The neighbour of number i in a decreasing list that is at most `separation` standard errors away, those of the
/// larger of the two: the vectors of both mix, and what is said of each alone fails.
[[nodiscard]] std::optional<std::size_t> close_neighbour(std::span<const double> values, std::span<const double> errors,
                                                         std::size_t i, double separation);

/// Neighbouring spikes whose observed vectors mix. The law then describes the subspace that they span, and the mean of
/// their outliers, but no single vector.
struct SpikeCluster {
    std::size_t first = 0;   ///< number of its strongest spike, from 0
    std::size_t count = 1;   ///< number of its spikes; 1: the spike stands alone
    bool detectable = true;  ///< whether all of them are above the detection threshold
};

/// Cuts spikes, given by their strengths in decreasing order, into clusters, strongest first. Two neighbours are in one
/// cluster unless their strengths differ by more than separation_of_spikes standard deviations of the stronger one's
/// strength: spike_fluctuation of its outlier, divided by the slope of the outlier in the strength. Neighbours that are
/// both undetectable are in clusters of their own.
///
/// A spike that is not detectable, but has an outlier in a gap of the bulk (SupportGaps), is compared with a stronger
/// one by 1/strength^2 instead of the strength: the deviation of the stronger one is multiplied by 2/strength^3. To
/// first order the vectors of the outlier at z solve a 2 x 2 problem with the diagonal 1/strength_i^2 - T(z), so that
/// this is the distance that counts. It agrees with the difference of strengths where that is small and is larger
/// elsewhere; the difference of strengths is kept for all other spikes because the shares below were measured with it.
///
/// Source: to first order, the observed vectors of two spikes whose strengths differ by s such standard deviations are
/// rotated within the plane of the true ones by an angle whose mean square is 1/(2 s^2) for large s, because the
/// fluctuations of the 2 x 2 problem have the covariances of a GOE matrix: the one that couples two spikes has half the
/// variance of the one that moves an outlier. Each overlap loses this share. Measured with pairs of 1.5 and of 2
/// thresholds (white 64x64, 128x128 and 256x256, AR(.5) x exp(2) 64x128 and 128x64, 200 to 2000 blocks), the losses
/// were 44 to 54 % at s = 0, 13 to 17 % at 2, 2.9 to 4.1 % at 4, 1.0 to 1.6 % at 6 and 0 to 0.9 % at 8, alike at all
/// sizes. A spike between two others that are 6 away lost 2.5 %, and one in the middle of many would lose 4.6 %.
///
/// The fluctuation is that of Gaussian entries, whatever the entries are, because their kurtosis does not couple
/// spikes: at s = 6 the mean square was 1.03 to 1.12 times 1/(2 s^2), +- 0.07, for gaussian, laplace, student:7 and
/// sparse:0.1 (white 128x128); for student:5, whose largest entries are spikes of their own, 1.32 +- 0.14.
///
/// The mean squared cosine between the true and the observed subspace of a cluster, and the mean of its outliers, have
/// the means of the spikes' own limits up to O(1/d), for any distances within the cluster: turns within the subspace
/// change neither. Measured for pairs of 2 thresholds at s = 0 and 3 in white noise of d = 32 to 256, the cosine
/// exceeded the limit by 0.31/d to 0.40/d (+- 0.01/d at d = 32), so that no term of order d^(-1/2) is left.
///
/// Throws usage_error when strengths increase, when n/d is not the aspect of the law, and as SeparableLaw::spike does.
/// Cost: two predictions for each detectable spike but the last, and the gaps of the law where a spike below the
/// threshold is close to a detectable one.
[[nodiscard]] std::vector<SpikeCluster> spike_clusters(const SeparableLaw& law,
                                                       std::span<const SignalStrength> strengths, std::size_t rows,
                                                       std::size_t columns);

/// The outlier that a spike without one above the top edge has in a gap of the bulk, in blocks of one size.
struct GapOutlier {
    std::size_t spike = 0;  ///< its number, from 0 at the strongest
    std::size_t gap = 0;    ///< the topmost gap in which it has one, a number in SupportGaps::gaps
    std::size_t index = 0;  ///< number of the outlier among the eigenvalues of a block, from 0 at the largest
    SpikePrediction prediction;
    double deviation = 0.0;  ///< standard deviation of the outlier; not a number where a 0.01 % other strength has none
    bool separate = true;    ///< whether its vectors are its own: no other spike is too close in the gap
};

/// These outliers of spikes that are given by their strengths in decreasing order. Every stronger spike leaves one
/// eigenvalue more above the outlier than the noise has above the gap: its own outlier in the gap, or one that it has
/// pushed over the upper end. (Eigenvalues cross a point of a gap only upwards and only once while a strength grows.)
///
/// The deviation is that of Gaussian entries and Haar vectors u, v, to first order in 1/sqrt(d). With the resolvents
/// G1, G2 of Z Z^T and Z^T Z, the outlier solves (1/strength + u^T G1 Z v)^2 = z (u^T G1 u)(v^T G2 v), where the three
/// forms vary independently, with the variances (m1 + z m1')/d, 2 (m1' - m1^2)/n and 2 (m2' - m2^2)/d. Above the top
/// edge of white and coloured noise this is spike_fluctuation (spike_clusters_test); in gaps it is compared with
/// simulations (gap_simulation_test).
///
/// Two spikes are separate in a gap if their 1/strength^2 differ by more than s = 4 standard deviations of T at the
/// outlier. As in spike_clusters, each overlap loses about 1/(2 s^2) of its limit, 3.1 % at s = 4. The distance from a
/// stronger spike is at most 1/strength^2, so that six deviations would separate none in 100 rows.
/// Measured for 1.67 beside 3.6 in noise of the variances 1 and 25 (plain simulations with other random numbers; rows,
/// s, losses of the left and right overlap, 1/(2 s^2)): 50, 3.2, 4.6(4) and 4.4(3) %, 5.0 %; 100, 4.5, 2.2(4) and
/// 2.3(2) %, 2.5 %. The outlier was 2.2(2) and 1.2(2) % lower than its limit.
///
/// Throws usage_error as SeparableLaw::spike does. Outliers with an index beyond min(rows, columns) are left out.
[[nodiscard]] std::vector<GapOutlier> gap_outliers(const SeparableLaw& law, const SupportGaps& outside,
                                                   std::span<const SignalStrength> strengths, std::size_t rows,
                                                   std::size_t columns);

/// The standard deviation of an outlier in blocks of one size, as above, from its prediction and those of a slightly
/// weaker and a slightly stronger spike.
[[nodiscard]] double outlier_deviation(const SpikePrediction& at, const SpikePrediction& weaker,
                                       const SpikePrediction& stronger, std::size_t rows, std::size_t columns);

}  // namespace spiked::theory
