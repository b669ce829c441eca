#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "validation/engine/compare_verdicts.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// A mean that is in both stores. Differences are b - a.
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
    std::uint64_t pairs = 0;    ///< number of replicates if the difference is paired by replicate, otherwise 0
    std::uint64_t batches = 0;  ///< number of batches if it is paired by batch, otherwise 0; if both are 0, the two
                                ///< means are compared without pairs (Welch)
    double difference = 0.0;
    double standard_error = 0.0;  ///< of the difference; NaN if a side has fewer than two values
    double p = 0.0;       ///< p-value of the difference if the true means are equal; NaN without a standard error
    bool beyond = false;  ///< whether p is below alpha
};

struct StoreComparison {
    /// In the order of store a, and behind them the exponents of both stores, which are compared as if they were
    /// independent: with equal draws small differences are not found.
    std::vector<ComparedMean> rows;
    std::vector<std::string> only_a;  ///< `cell | method | metric`, followed by the spike if there is one
    std::vector<std::string> only_b;
    VerdictComparison verdicts;  ///< of the checks and claims of studies
    std::string seed_a;
    std::string seed_b;
    std::size_t cells_by_label = 0;  ///< cells matched by label only: their parameters, and so their draws, differ
    double false_alarm = 0.0;  ///< nominal, for all rows jointly: the smaller of the rates that the stores declare
    double alpha = 0.0;        ///< per row: false_alarm divided by the number of rows with a standard error
    std::size_t beyond = 0;    ///< number of rows with p below alpha
    // Batches of the same cell, draws and replicates in which both stores measured a common quantity, and those of them
    // in which the numbers of such a quantity differ.
    std::uint64_t batches_in_both = 0;
    std::uint64_t batches_changed = 0;
    std::string first_changed;  ///< `batch 3 of CELL`; empty if there is none
    /// Whether the stores are of dumps or models. Blocks of a head or document are then dependent, so standard errors
    /// and p within a cell are too small.
    bool dependent_draws = false;

    /// Sets alpha, and which rows are beyond it, from false_alarm and the p-values of all rows.
    void divide_false_alarm();
    /// Schema `spiked.compare/1`, except for verdicts and claims.
    [[nodiscard]] Json json() const;
};

/// Sets the difference of two estimates that are independent of each other, its standard error and p (Welch).
void compare_independent(ComparedMean& row);

/// Compares two stores for each cell, method, metric and spike that both have. Cells match if their hashes are equal,
/// otherwise if their labels are equal and unique in each store. With equal seed and hash the draws are the same, so
/// the difference is paired, which detects much smaller differences than two independent means: by replicate if both
/// stores keep all draws, else by batch (if there are at least three batches of the same replicates), else by the draws
/// that both keep. This also holds if one store has other methods or more replicates. Differences below the rounding
/// error of the means count as zero. Throws usage_error if the stores have no mean in common. To read consistent states
/// of stores while runs write to them, begin a transaction on each before.
[[nodiscard]] StoreComparison compare_stores(Database& a, Database& b);

}  // namespace spiked::validation
