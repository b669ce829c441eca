#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/random/address.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

/// Null laws are simulated, which takes more draws for smaller levels.
inline constexpr NumberRange adequacy_levels{.least = 1e-4, .most = 0.5};

struct AdequacyPlan {
    KvPlan blocks;  ///< dumps, block_tokens, layers, heads, side, dump
    stream::StudySeed seed;
    double level = 0.01;  ///< level of each test for each block, one of adequacy_levels
    std::size_t threads = 0;
    std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< in blocks; may be empty
};

/// Results for a group of blocks: all blocks, those of a side, of a side and layer, or of a side, layer and head.
struct AdequacyRow {
    std::optional<sim::Side> side;
    std::optional<std::size_t> layer;
    std::optional<std::size_t> head;
    std::uint64_t blocks = 0;  ///< blocks judged
    std::uint64_t skipped = 0;
    std::uint64_t clusters = 0;
    double degrees = std::numeric_limits<double>::quiet_NaN();  ///< of freedom of the errors; NaN with one cluster
    MeanAndError rank, half_rank, power_law, exponent, peak_over_bound;  ///< power_law: fraction where it fits better
    /// Fractions of blocks that each test rejects, and last that any test of the model rejects, with 95 % limits
    /// (nominal: clustered_fraction). With one cluster the error is NaN and the limits are binomial, for blocks that
    /// are independent within it.
    std::vector<Interval> rejected;
};

struct Adequacy {
    std::vector<KvInput> inputs;
    stream::StudySeed seed;
    double level = 0.01;
    std::size_t draws = 0;
    std::string cluster;             ///< "prompt" | "head", as in `kv run`
    std::vector<std::string> notes;  ///< of open_dumps
    std::vector<AdequacyRow> rows;   ///< all blocks; then each side, followed by its layers, each followed by its heads
};

/// Throws usage_error and input_error as `kv run` does, and also for a level outside [1e-4, 0.5] and for shapes that
/// judge_head does not accept. Holds one head in memory at a time.
[[nodiscard]] Adequacy measure_adequacy(const AdequacyPlan& plan);

}  // namespace spiked::validation
