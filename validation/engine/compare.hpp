#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.hpp"

namespace spiked::validation {

/// A mean in two stores. Differences are b - a.
struct ComparedMean {
    std::string cell;
    std::string method;
    std::string metric;
    int k = 0;
    struct Side {
        std::uint64_t count = 0;
        double mean = 0.0;
        double standard_error = 0.0;
    };
    Side a;
    Side b;
    std::uint64_t pairs = 0;    ///< replicates that the difference is taken over, draw by draw; with no batches either:
                                ///< of the two means (Welch)
    std::uint64_t batches = 0;  ///< of the same replicates, that it is taken over where not all draws are kept
    double difference = 0.0;
    double standard_error = 0.0;  ///< of the difference; NaN when a side has fewer than two values
    double p = 0.0;               ///< chance of a difference as large where there is none; NaN without an error
    bool beyond = false;          ///< p below this row's share of the false-alarm rate
};

struct StoreComparison {
    std::vector<ComparedMean> rows;   ///< in the order of a
    std::vector<std::string> only_a;  ///< `cell | method | metric`, with the spike where there is one
    std::vector<std::string> only_b;
    std::string seed_a;
    std::string seed_b;
    std::size_t cells_by_label = 0;  ///< of one label in both, though something that they draw by differs
    double false_alarm = 0.0;        ///< of all rows together: the smaller of the stores' declared ones
    double alpha = 0.0;              ///< of a row: that over the number of rows with an error
    std::size_t beyond = 0;          ///< rows
    // Batches of the same cell, draws and replicates in which both stores measured something, and those where a method
    // that both have holds other numbers.
    std::uint64_t batches_in_both = 0;
    std::uint64_t batches_changed = 0;
    std::string first_changed;  ///< `batch 3 of CELL`; empty when there is none
    /// Of dumps and models: blocks of a head or document depend on each other, so errors and p within a cell are too
    /// small.
    bool dependent_draws = false;

    /// `spiked.compare/1`
    [[nodiscard]] Json json() const;
};

/// Compares what two stores say of the same cell, method, metric and spike. Cells are the same when their hashes are,
/// otherwise when their labels are and only one cell of each store has that label. Where seed and hash agree the draws
/// are the same: means are then compared replicate by replicate where both stores keep all draws, else batch by batch
/// (from three batches of the same replicates on), else over the draws that both keep, which sees much smaller
/// differences than the two means do; a method exchanged or more replicates in one of them change nothing about that.
/// Differences below the rounding of the means are none. Throws as open_store does, and usage_error where the stores
/// have no mean in common.
[[nodiscard]] StoreComparison compare_stores(const std::string& path_a, const std::string& path_b);

}  // namespace spiked::validation
