#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace spiked::validation {

/// Count and sum of one quantity within one cluster.
struct ClusterSum {
    std::uint64_t count = 0;
    double sum = 0.0;
};

/// Mean over blocks with a standard error that is valid for any dependence between blocks of one cluster.
struct ClusteredMean {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double standard_error = std::numeric_limits<double>::quiet_NaN();  ///< NaN with fewer than two clusters
    std::uint64_t count = 0;
};

/// mean = sum / count over all clusters; se^2 = G/(G-1) sum_g (S_g - n_g mean)^2 / N^2, the linearised ratio estimator,
/// which for clusters of equal size is the usual error of the mean of cluster means (Cochran, Sampling Techniques, ch.
/// 9).
[[nodiscard]] ClusteredMean clustered_mean(const std::map<std::string, ClusterSum>& clusters);

}  // namespace spiked::validation
