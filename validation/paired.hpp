#pragma once
#include <cstdint>
#include <map>

namespace spiked::validation {

/// What independent parts of a sample (replicates, batches, or clusters of blocks) add to a mean: count and sum, by the
/// number of the part.
struct Parts {
    struct Sum {
        double count = 0.0;
        double sum = 0.0;
    };
    std::map<std::int64_t, Sum> sums;

    [[nodiscard]] double mean() const;
    /// Of the mean; NaN with fewer than two parts.
    [[nodiscard]] double error() const;
};

struct PairedEstimate {
    double value = 0.0;
    double error = 0.0;  ///< standard error; NaN with fewer than two parts
    std::size_t parts = 0;

    /// Whether the value is off zero by more than two standard errors; with few parts by what Student's law puts as
    /// rarely outside (4.55 %).
    [[nodiscard]] bool beyond_noise() const;
};

/// Mean of `a` minus mean of `b`, and their ratio. A part that is in both moves both: to first order the error is that
/// of the parts' influences, sqrt(G / (G - 1) sum_g e_g^2) with e_g of part g, as in the view v_cluster of the store.
[[nodiscard]] PairedEstimate paired_difference(const Parts& a, const Parts& b);
[[nodiscard]] PairedEstimate paired_ratio(const Parts& a, const Parts& b);

}  // namespace spiked::validation
