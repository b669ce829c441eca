#pragma once
#include <cstdint>
#include <limits>
#include <map>

namespace spiked::validation {

/// A mean and its Monte Carlo standard error; NaN if not available.
struct MeanAndError {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double mcse = std::numeric_limits<double>::quiet_NaN();
};

/// An estimate computed from sums over independent parts of a sample (replicates, batches, prompts, or clusters of
/// blocks), with the influence of each part: the change of the estimate, to first order, with the weight of the part.
struct PartEstimate {
    double value = 0.0;
    std::map<std::int64_t, double> influence = {};  ///< by the number of the part

    /// sqrt(G / (G - 1) sum_g e_g^2) with the influence e_g of part g, as in the view v_cluster of the store; NaN with
    /// fewer than two parts.
    [[nodiscard]] double error() const;
    /// Whether the value differs from zero by more than two standard errors. With few parts the limit is the quantile
    /// of Student's law that is exceeded with the same probability (4.55 %).
    [[nodiscard]] bool beyond_noise() const;
};
/// weight_a * a + weight_b * b. The influences of a part that is in both estimates add up.
[[nodiscard]] PartEstimate combined(const PartEstimate& a, double weight_a, const PartEstimate& b, double weight_b);

/// Contributions of parts to a mean: count and sum, by the number of the part.
struct Parts {
    struct Sum {
        double count = 0.0;
        double sum = 0.0;
    };
    std::map<std::int64_t, Sum> sums;

    [[nodiscard]] PartEstimate mean() const;
};

/// Difference and ratio of the mean of `a` and the mean of `b`. Parts with the same number are the same part of the
/// sample.
[[nodiscard]] PartEstimate paired_difference(const Parts& a, const Parts& b);
[[nodiscard]] PartEstimate paired_ratio(const Parts& a, const Parts& b);

}  // namespace spiked::validation
