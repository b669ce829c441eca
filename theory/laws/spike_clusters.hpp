#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "theory/laws/separable_law.hpp"

namespace spiked::theory {

/// Standard deviations of the stronger spike's estimated strength by which two strengths must differ for the law's
/// predictions about each of the two to hold. See spike_clusters.
inline constexpr double separation_of_spikes = 6.0;

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

}  // namespace spiked::theory
