#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include "validation/metrics/metric_table.hpp"

namespace spiked::validation {

/// Results for one block of a spiked model, whatever the method, computed on the CPU or by kernels.
struct SampleResult {
    std::size_t rank = 0;                     ///< number of spikes of the model
    std::size_t spikes = 0;                   ///< number of spikes that are reported: at most the rank
    bool truth = false;                       ///< whether the signal is known
    std::vector<double> values, left, right;  ///< for each spike that the block shows: the singular value, and the
                                              ///< inner products of the found with the true vectors
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
