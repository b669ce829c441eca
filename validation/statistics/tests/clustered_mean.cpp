#include "validation/statistics/tests/clustered_mean.hpp"

#include <cmath>

namespace spiked::validation {

ClusteredMean clustered_mean(const std::map<std::string, ClusterSum>& clusters) {
    ClusteredMean result;
    double sum = 0.0;
    double used = 0.0;
    for (const auto& [name, cluster] : clusters) {
        result.count += cluster.count;
        sum += cluster.sum;
        if (cluster.count > 0) used += 1.0;
    }
    if (result.count == 0) return result;
    const double total = static_cast<double>(result.count);
    result.mean = sum / total;
    if (used < 2.0) return result;
    double squares = 0.0;
    for (const auto& [name, cluster] : clusters) {
        const double deviation = cluster.sum - static_cast<double>(cluster.count) * result.mean;
        squares += deviation * deviation;
    }
    result.standard_error = std::sqrt(used / (used - 1.0) * squares) / total;
    return result;
}

}  // namespace spiked::validation
