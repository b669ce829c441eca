#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/coding/ledger.hpp"
#include "validation/engine/sqlite.hpp"
#include "validation/statistics/paired.hpp"

namespace spiked::validation {

/// One row of the paper's table: a side, method and bit width, over every layer, head and full block of all dumps.
struct KvRow {
    std::string side;
    std::string method;
    double bits = 0;
    std::optional<double> budget;  ///< for evictions
    std::vector<double> ledger;    ///< bits per entry by item, in the order of estimators::item_names
    std::map<std::string, MeanAndError, std::less<>> means;  ///< by metric: over blocks, with clustered errors
    std::uint64_t blocks = 0;

    /// NaN where the metric was not measured.
    [[nodiscard]] MeanAndError of(std::string_view metric) const;
};

struct KvInput {
    std::string file, sha256, model;
    std::uint64_t blocks = 0;          ///< full blocks measured, of both sides
    std::uint64_t tokens_skipped = 0;  ///< tokens of partial last blocks, over layers, heads and sides
};

struct KvTable {
    std::vector<KvInput> inputs;
    std::string cluster;       ///< "prompt" from 8 prompts on, otherwise "head" (layer and head of a model)
    std::size_t clusters = 0;  ///< number of clusters
    std::vector<KvRow> rows;   ///< keys, then values; by method and bits, in the order requested
};

/// Reads the table of a dump study from its store.
[[nodiscard]] KvTable kv_table(Database& store);

}  // namespace spiked::validation
