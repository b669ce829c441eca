#pragma once
#include <cstdint>
#include <limits>
#include <map>

namespace spiked::validation {

/// NaN where there is none.
struct MeanAndError {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double mcse = std::numeric_limits<double>::quiet_NaN();
};

/// A number made of sums over independent parts of a sample (replicates, batches, prompts, or clusters of blocks), and
/// by how much it moves, to first order, with the weight of each part.
struct PartEstimate {
    double value = 0.0;
    std::map<std::int64_t, double> influence = {};  ///< by the number of the part

    /// sqrt(G / (G - 1) sum_g e_g^2) with the influence e_g of part g, as in the view v_cluster of the store; NaN with
    /// fewer than two parts.
    [[nodiscard]] double error() const;
    /// Whether the value is off zero by more than two standard errors; with few parts by what Student's law puts as
    /// rarely outside (4.55 %).
    [[nodiscard]] bool beyond_noise() const;
};
/// A part that is in both moves both.
[[nodiscard]] PartEstimate combined(const PartEstimate& a, double weight_a, const PartEstimate& b, double weight_b);

/// What parts add to a mean: count and sum, by the number of the part.
struct Parts {
    struct Sum {
        double count = 0.0;
        double sum = 0.0;
    };
    std::map<std::int64_t, Sum> sums;

    [[nodiscard]] PartEstimate mean() const;
};

/// Mean of `a` minus mean of `b`, and their ratio.
[[nodiscard]] PartEstimate paired_difference(const Parts& a, const Parts& b);
[[nodiscard]] PartEstimate paired_ratio(const Parts& a, const Parts& b);

}  // namespace spiked::validation
