#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "estimators/compressor.hpp"
#include "sim/kv_dump.hpp"
#include "validation/clustered_mean.hpp"

namespace spiked::validation {

/// What to measure on which dumps. Empty sets mean all.
struct KvPlan {
    std::vector<std::string> dumps;
    std::vector<std::string> methods;
    std::vector<unsigned> bits;
    std::size_t block_tokens = 128;
    std::set<std::size_t> layers;
    std::set<std::size_t> heads;
    std::optional<sim::Side> side;  ///< key and value when not given
    sim::DumpOptions dump;
    estimators::QuantizerOptions quantizer;
    std::size_t threads = 0;  ///< 0: as many as the machine has; never changes a number
};

/// One line of the paper's table: a side, a method and a bit width over every layer, head and full block of all dumps.
/// Every mean is over blocks; its error is clustered.
struct KvRow {
    sim::Side side = sim::Side::key;
    std::string method;
    unsigned bits = 0;
    double bits_per_entry = 0.0;  ///< stored bits over stored entries
    std::vector<double> ledger;   ///< bits per entry by item, in the order of estimators::item_names
    ClusteredMean paper_bits;
    ClusteredMean rank;
    ClusteredMean relative_l2;
    ClusteredMean ip_bias;
    ClusteredMean ip_std;
    ClusteredMean ip_bias_plain;
    ClusteredMean ip_std_plain;
    std::uint64_t blocks = 0;
};

struct KvInput {
    std::string file;
    std::string sha256;
    std::string model;
    std::uint64_t blocks = 0;          ///< full blocks measured, both sides together
    std::uint64_t tokens_skipped = 0;  ///< tokens of partial last blocks, over layers, heads and sides
};

struct KvTable {
    std::vector<KvInput> inputs;
    std::string cluster;       ///< "prompt" from 8 prompts on, else "head" (a layer and head of one model)
    std::size_t clusters = 0;  ///< how many of them
    std::vector<KvRow> rows;   ///< by side, method, bits, in the order asked
};

using Progress = std::function<void(std::size_t done, std::size_t total)>;

/// Streams every block of every dump through every method, in parallel over heads; memory holds one block a thread.
/// All names and files are checked before the first block is read. Throws usage_error and input_error; the same numbers
/// for any number of threads.
[[nodiscard]] KvTable measure_dumps(const KvPlan& plan, const Progress& progress = {});

}  // namespace spiked::validation
