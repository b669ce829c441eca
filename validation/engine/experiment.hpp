#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.hpp"
#include "core/text/json.hpp"
#include "sim/random/address.hpp"
#include "validation/metrics/metric_table.hpp"

namespace spiked::validation {

/// Bytes of texts that a store repeats in many tables.
inline constexpr std::size_t longest_label = 2000;    ///< of a cell
inline constexpr std::size_t longest_factor = 5000;   ///< of a value that cells differ in
inline constexpr std::size_t longest_message = 2000;  ///< why a replicate failed

/// Who made a number: an estimator, a codec at one bit width, or the sample itself.
struct ExperimentMethod {
    std::string name;  ///< unique: with bits for a codec
    std::string kind;  ///< sample | estimator | codec
    std::string base;  ///< the name without bits: what was typed, or its label
    std::optional<double> bits;
    Json params = Json::object();
};

struct Factor {
    std::string name;
    std::optional<double> number;
    std::string text;
};

/// What theory says about a metric of a cell, and what it would say with the claim's planted fault.
struct Prediction {
    std::string claim;
    std::string metric;
    std::size_t method = 0;  ///< position in Experiment::methods
    int k = 0;               ///< spike, from 1; 0 where there is none
    double value = 0.0;
    double with_fault = 0.0;
};

/// The limit value of a metric in a cell, for tables and figures.
struct LimitValue {
    std::string metric;
    int k = 0;
    double value = 0.0;
};

struct ExperimentCell {
    std::string label;
    std::size_t rows = 0;
    std::size_t columns = 0;
    Json params;                       ///< canonical; its hash is the cell's identity and the address of its randomness
    std::size_t replicates = 0;        ///< at most
    std::size_t least_replicates = 0;  ///< before the stop rules are first asked; 0: all of them
    std::vector<Factor> factors;
    std::vector<LimitValue> limits;
    std::vector<Prediction> predictions;

    /// Replicates before the stop rules are first asked.
    [[nodiscard]] std::size_t least() const { return least_replicates == 0 ? replicates : least_replicates; }
    [[nodiscard]] std::string hash() const;
};

struct ExperimentInput {
    std::string path;
    std::uint64_t bytes = 0;
    std::string sha256;
    std::string format;
    std::string layout;
    std::string model;
    Json meta = Json::object();
};
/// The suffix of a file, "unknown" where it has none.
[[nodiscard]] std::string format_of(const std::string& path);

struct ReplicateRange {
    std::uint64_t first = 0;
    std::uint64_t count = 1;
    [[nodiscard]] std::uint64_t end() const { return first + count; }
};

/// Of a factor: a comparison (ge, le, gt, lt, eq) with a number, or `is` with a text.
struct FactorCondition {
    std::string factor;
    std::string comparison;
    double number = 0.0;
    std::string text = {};
};
/// Whether all hold; a factor that is not there meets none.
[[nodiscard]] bool hold(const std::vector<FactorCondition>& conditions, const std::vector<Factor>& factors);

/// A check of a study: a claim, where it is asked, and within what margin.
struct Check {
    std::string name;
    std::string claim;
    std::vector<FactorCondition> where;
    double margin_absolute = 0.0;
    double margin_relative = 0.0;  ///< of the expected value
    double rate_exponent = 0.0;    ///< the margin holds at min(n, d) = 128 and scales with this power

    [[nodiscard]] bool applies_to(const ExperimentCell& cell) const { return hold(where, cell.factors); }
    [[nodiscard]] double margin(const ExperimentCell& cell, double expected) const;
};

/// A cell has enough replicates when the standard error of every mean of the metric (of any method and spike) is at
/// most `relative` times that mean and at most `absolute`. At least one of them is above 0; the one that is 0 asks
/// nothing.
struct StopRule {
    std::size_t metric = 0;
    double relative = 0.0;
    double absolute = 0.0;
};

/// What a store says of a claim that studies can check: the texts that its reports show.
struct ClaimText {
    std::string id;
    std::string place;
    std::string statement;
    std::string control;  ///< the planted fault, in words
};

struct NamedArray {
    std::size_t method = 0;
    std::string name;
    arma::mat values;
};

/// Whether the cells of this kind of study are heads of dumps, or documents and prompts of a model: clustered, by side,
/// and of blocks that are there once.
[[nodiscard]] bool of_dumps_or_models(std::string_view kind);

/// Everything the engine needs to run a study, whatever its blocks are made of.
struct Experiment {
    std::string name;
    std::string title;
    std::string kind;                 ///< spiked | kv_like | matrix | kv_dump | kv_model
    std::string config_source;        ///< the study file, or the command line
    Json config_set = Json::array();  ///< [key, value] pairs: what --set changed of it
    Json science;                     ///< all that can change a number
    stream::StudySeed seed;
    std::string seed_source = "config";  ///< config | cli | generated
    double false_alarm = 1e-6;
    std::size_t batch = 50;
    std::vector<StopRule> until;  ///< all must hold for a cell to stop before its last replicate; empty: none does
    std::size_t raw_per_cell = static_cast<std::size_t>(-1);
    double failure_budget = 0.01;
    std::vector<ExperimentInput> inputs;
    std::vector<ExperimentMethod> methods;
    std::vector<ExperimentCell> cells;
    std::vector<ClaimText> claims;  ///< all that a check may name
    std::vector<Check> checks;
    std::vector<Json> figures;
    std::vector<std::string> notes;  ///< what is left out, and what would change that; for people

    /// Makes the worker of some replicates of one cell; each thread gets its own. The worker turns a replicate into
    /// observations, the same whatever range it was made for; asked in order, it prepares several at once.
    using Worker = std::function<std::vector<Observation>(std::uint64_t replicate)>;
    std::function<Worker(std::size_t cell, ReplicateRange range)> worker;
    /// Has the worker compute on a device whatever kernels can, from now on and for so many threads; says what stays on
    /// the CPU, and why. False where all of it does. Null: no kernel knows such studies.
    std::function<bool(const spiked::cuda::Device& device, std::size_t threads, std::vector<std::string>& notes)>
        move_to;
    std::string backend = "cpu";  ///< who computes: name_of its Backend
    bool mixed = false;           ///< whether a store of another backend may be gone on with
    /// Replicates of one cell that a worker likes to be asked for in one range: batches are joined to that. 0: one.
    std::size_t together = 0;
    /// The block of one replicate, to look at; may be empty.
    std::function<arma::mat(std::size_t cell, std::uint64_t replicate)> block;
    /// Arrays worth keeping of replicate 0 of a cell; may be empty.
    std::function<std::vector<NamedArray>(std::size_t cell)> arrays;

    [[nodiscard]] std::string science_hash() const;
    /// At most, over all cells.
    [[nodiscard]] std::size_t replicates() const;
    /// At least, over all cells.
    [[nodiscard]] std::size_t least_replicates() const;
};

}  // namespace spiked::validation
