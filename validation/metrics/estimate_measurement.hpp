#pragma once
#include <armadillo>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "theory/laws/spike_clusters.hpp"
#include "validation/metrics/metric_table.hpp"

namespace spiked::validation {

/// What the observed vectors of a cluster of spikes show of the subspaces that the true ones span. NaN where the block
/// has fewer singular values.
struct SubspaceResult {
    std::size_t first = 0;                                           ///< the cluster's first spike, from 0
    double outlier = std::numeric_limits<double>::quiet_NaN();       ///< mean of the observed eigenvalues
    double overlap_left = std::numeric_limits<double>::quiet_NaN();  ///< mean squared cosine of the principal angles
    double overlap_right = std::numeric_limits<double>::quiet_NaN();
    double angle_left = std::numeric_limits<double>::quiet_NaN();  ///< the largest principal angle, in degrees
    double angle_right = std::numeric_limits<double>::quiet_NaN();
};

/// The results of a cluster. `values`: the singular values of the block; `left`, `right`: inner products of the true
/// vectors (rows) with the found ones (columns), both orthonormal, of as many spikes as the block shows.
[[nodiscard]] SubspaceResult subspace_result(const theory::SpikeCluster& cluster, const std::vector<double>& values,
                                             const arma::mat& left, const arma::mat& right);

/// The outlier of a spike in a gap of the noise's bulk, and the squared inner products of its vectors with the true
/// ones.
struct GapResult {
    std::size_t spike = 0;  ///< from 0
    double outlier = std::numeric_limits<double>::quiet_NaN();
    double overlap_left = std::numeric_limits<double>::quiet_NaN();
    double overlap_right = std::numeric_limits<double>::quiet_NaN();
};

/// Results for one block of a spiked model, whatever the method, computed on the CPU or by kernels.
struct SampleResult {
    /// Number of spikes above the detection threshold of the law; empty where the law is not known.
    std::optional<std::size_t> detectable = {};
    std::size_t spikes = 0;                   ///< number of spikes that are reported
    bool truth = false;                       ///< whether the signal is known
    std::vector<double> values, left, right;  ///< for each spike that the block shows: the singular value, and the
                                              ///< inner products of the found with the true vectors
    std::vector<SubspaceResult> subspaces;    ///< of the clusters of spikes that are too close to be told apart
    std::vector<GapResult> in_gaps;           ///< of the spikes that are seen in a gap of the noise only
    double energy = 0.0;                      ///< ||S||_F^2
    double oracle = 0.0;                      ///< squared error of the optimal singular values for the observed vectors
};

/// The result of a spectral estimator for such a block.
struct EstimateResult {
    const SampleResult& sample;
    std::size_t rank = 0;
    double bulk_edge = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> strengths = {}, shrunk = {};  ///< of the components that it keeps
    double error = 0.0;                               ///< ||S^ - S||_F^2, where the signal is known
};

/// Appends the metrics of the sample, for each spike; missing values of a spike that the block does not show are NaN.
void observe_sample(const SampleResult& sample, std::vector<Observation>& to);

/// Appends the metrics of an estimate. Its components are those that it keeps or, if the signal is known, one for each
/// spike.
void observe_estimate(const EstimateResult& estimate, std::size_t method, std::vector<Observation>& to);

}  // namespace spiked::validation
