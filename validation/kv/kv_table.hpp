#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/coding/ledger.hpp"
#include "validation/statistics/paired.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// The mean of a metric over the blocks of a side, coded by one method, with its clusters. The view v_cluster of the
/// store holds the same mean with the error sqrt(G / (G - 1) sum_g e_g^2), which is that of Parts::mean only where all
/// clusters have as many blocks.
struct BlockMean {
    std::string side;
    std::int64_t method_id = 0;
    std::string name;    ///< of the method with its bit width
    std::string method;  ///< without it
    double bits = 0;
    std::optional<double> budget;  ///< for evictions
    std::string metric;
    Parts clusters;  ///< by a number that a cluster has in all means

    [[nodiscard]] std::uint64_t blocks() const;
};
/// All of a dump study, or of a study of a model, by side and method.
[[nodiscard]] std::vector<BlockMean> block_means(Database& store);

/// One row of the paper's table: a side, method and bit width, over every layer, head and full block of all dumps.
struct KvRow {
    std::string side;
    std::string method;
    double bits = 0;
    std::optional<double> budget;                              ///< for evictions
    estimators::PerItem<double> ledger;                        ///< bits per entry by item
    std::map<std::string, MeanAndError, std::less<>> means;    ///< by metric: over blocks, with clustered errors
    std::map<std::string, std::uint64_t, std::less<>> counts;  ///< by metric: blocks behind the mean
    std::uint64_t blocks = 0;

    /// NaN where the metric was not measured.
    [[nodiscard]] MeanAndError of(std::string_view metric) const;
    /// The degrees of freedom of the errors; the fewest where a metric was measured in some clusters only. NaN with one
    /// cluster.
    [[nodiscard]] double degrees() const;
};

struct KvInput {
    std::string file, sha256, model;
    std::uint64_t blocks = 0;          ///< full blocks measured so far, of both sides
    std::uint64_t tokens_skipped = 0;  ///< tokens of partial last blocks, over layers, heads and sides
};

struct KvTable {
    std::vector<KvInput> inputs;
    std::string cluster;       ///< "prompt" from 8 prompts on, otherwise "head" (layer and head of a model)
    std::size_t clusters = 0;  ///< number of clusters measured so far
    std::size_t planned_clusters = 0;
    bool partial = false;     ///< the store lacks a part of what was planned, as after an interruption
    std::vector<KvRow> rows;  ///< keys, then values; by method and bits, in the order requested
};

/// Reads the table of a dump study from its store.
[[nodiscard]] KvTable kv_table(Database& store);

}  // namespace spiked::validation
