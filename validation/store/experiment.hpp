#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.hpp"
#include "core/text/enum_names.hpp"
#include "core/text/json.hpp"
#include "sim/random/address.hpp"
#include "validation/metrics/metric_table.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

class Database;

/// Most bytes of texts that are repeated in many rows of a store.
inline constexpr std::size_t longest_label = 2000;        ///< label of a cell
inline constexpr std::size_t longest_factor = 5000;       ///< value of a factor of the design
inline constexpr std::size_t longest_message = 2000;      ///< reason of a failed replicate
inline constexpr std::size_t longest_statement = 20'000;  ///< statement of a claim; name and title of a study

/// Blocks are drawn and decomposed in groups of at most so many, which have so many bytes at most in all unless one
/// block has more. Dry runs forecast memory by them.
inline constexpr std::size_t most_blocks_of_group = 16;
inline constexpr std::size_t most_bytes_of_group = std::size_t{32} << 20;

/// The method that a number belongs to: an estimator, a codec at one bit width, or the sample itself.
struct ExperimentMethod {
    std::string name;  ///< unique; for a codec it includes the bits
    std::string kind;  ///< sample | estimator | codec
    std::string base;  ///< the name without bits, as written in the study, or its label
    std::optional<double> bits;
    Json params = Json::object();
};

/// A value that cells differ in, for example a swept parameter.
struct Factor {
    std::string name;
    std::optional<double> number;
    std::string text;
};

/// The prediction of the theory for a metric of a cell, and the prediction with the claim's planted defect (the
/// negative control).
struct Prediction {
    std::string claim;
    std::string metric;
    std::size_t method = 0;  ///< position in Experiment::methods
    int k = 0;               ///< spike, from 1; 0 if the metric has none
    double value = 0.0;
    double with_fault = 0.0;
    std::optional<AcceptanceRegion> region = {};  ///< in place of `value` and the margin of its check
};

/// The reason why the theory does not say about a cell what a claim asks.
struct Caveat {
    std::string claim;
    bool judged = false;  ///< whether the cell is compared with the theory all the same
    std::string why;

    [[nodiscard]] bool operator==(const Caveat&) const = default;
};

/// The limit value of a metric in a cell, for tables and figures.
struct LimitValue {
    std::string metric;
    int k = 0;
    double value = 0.0;
};

/// A design point of a study.
struct ExperimentCell {
    std::string label;
    std::size_t rows = 0;
    std::size_t columns = 0;
    Json params;                       ///< canonical; its hash identifies the cell and addresses its random numbers
    std::size_t replicates = 0;        ///< most replicates
    std::size_t least_replicates = 0;  ///< replicates before the first check of the stop rules; 0: all of them
    std::vector<Factor> factors;
    std::vector<LimitValue> limits;
    std::vector<Prediction> predictions;
    std::vector<Caveat> caveats;  ///< each once; they are in no store, a check that meets one says so in a note
    /// The components that metrics of one component measure; no value where each estimate has a number of its own.
    std::optional<std::size_t> components = {};

    /// Number of replicates before the first check of the stop rules.
    [[nodiscard]] std::size_t least() const { return least_replicates == 0 ? replicates : least_replicates; }
    [[nodiscard]] std::string hash() const;
};

/// What a store keeps of a cell that a study has grown.
struct GrownCell {
    std::string params;  ///< ExperimentCell::params as text
    std::uint64_t replicates = 0;
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
/// The suffix of a file name, or "unknown" if it has none.
[[nodiscard]] std::string format_of(const std::string& path);

struct ReplicateRange {
    std::uint64_t first = 0;
    std::uint64_t count = 1;
    [[nodiscard]] std::uint64_t end() const { return first + count; }
};

enum class Relation { at_least, above, at_most, below, equal };

/// A condition on a factor: a relation to a number, or the text that it has.
struct FactorCondition {
    std::string factor;
    std::optional<Relation> relation;  ///< none: the factor has this text
    double number = 0.0;
    std::string text = {};
};
/// Whether all conditions hold. A condition on a factor that does not exist does not hold.
[[nodiscard]] bool hold(const std::vector<FactorCondition>& conditions, const std::vector<Factor>& factors);

/// A check of a study: a claim, the cells in which it is tested, and the margin.
struct Check {
    std::string name;
    std::string claim;
    std::vector<FactorCondition> where;
    double margin_absolute = 0.0;
    double margin_relative = 0.0;  ///< fraction of the expected value
    double rate_exponent = 0.0;    ///< the margins are those at min(n, d) = 128 and scale with this power of min(n, d)
    /// Empty: means are judged. Otherwise the exponent a with which a mean changes as this factor to the power of a,
    /// over the cells of each of size_groups.
    std::string exponent_of = {};

    [[nodiscard]] bool applies_to(const ExperimentCell& cell) const { return hold(where, cell.factors); }
    [[nodiscard]] double margin(const ExperimentCell& cell, double expected) const;
    /// Where the number must lie: that of the prediction, or its value with the margin.
    [[nodiscard]] AcceptanceRegion region(const ExperimentCell& cell, const Prediction& prediction) const;
};

/// A cell has enough replicates if the error of every mean of the metric (for all methods and spikes) is at most
/// `relative` times that mean and at most `absolute`. At least one of the two bounds is above 0; a bound of 0 is
/// not used.
struct StopRule {
    std::size_t metric = 0;
    double relative = 0.0;
    double absolute = 0.0;
    /// The unit of the metric in the store, which decides what the error is: fraction_error for share_of_replicates;
    /// for whole_components the standard error, but at least what a difference of 1 in too few replicates to be seen
    /// may contribute; otherwise the standard error.
    std::string unit = {};
};

/// Texts of a claim that studies can check, as reports show them.
struct ClaimText {
    std::string id;
    std::string place;
    std::string statement;
    std::string control;  ///< description of the planted defect
};

struct NamedArray {
    std::size_t method = 0;
    std::string name;
    arma::mat values;
};

/// Whether the cells of this kind of study are heads of dumps, or documents and prompts of a model. Their results are
/// clustered and reported by side, and their blocks are fixed data, not random draws.
[[nodiscard]] bool of_dumps_or_models(std::string_view kind);

/// The kind of a study whose cells are trials of claims.
inline constexpr std::string_view claims_kind = "claims";

/// Everything that the engine needs to run a study, for blocks from any source.
struct Experiment {
    std::string name;
    std::string title;
    std::string kind;                 ///< spiked | kv_like | matrix | kv_dump | kv_model | claims
    std::string config_source;        ///< the study file, or the command line
    Json config_set = Json::array();  ///< [key, value] pairs of the keys that --set changed
    Json science;                     ///< all settings that can change a number
    stream::StudySeed seed;
    std::string seed_source = "config";  ///< config | cli | generated
    double false_alarm = 1e-6;
    std::size_t batch = 50;
    std::vector<StopRule> until;  ///< a cell stops early if all of these hold; empty: no cell stops early
    std::size_t raw_per_cell = static_cast<std::size_t>(-1);
    double failure_budget = 0.01;
    std::vector<ExperimentInput> inputs;
    std::vector<ExperimentMethod> methods;
    std::vector<ExperimentCell> cells;
    std::vector<ClaimText> claims;  ///< all claims that a check may name
    std::vector<Check> checks;
    std::vector<Json> figures;
    std::vector<std::string> notes;  ///< messages for the user: what is left out, and how to include it

    /// Creates the worker for a range of replicates of one cell; each thread has its own worker. A worker returns the
    /// observations of a replicate. They do not depend on the range. If replicates are requested in order, the worker
    /// may prepare several at once.
    using Worker = std::function<std::vector<Observation>(std::uint64_t replicate)>;
    std::function<Worker(std::size_t cell, ReplicateRange range)> worker;
    /// Makes workers compute on a device, for `threads` threads, whatever its kernels support. Adds to `notes` what
    /// stays on the CPU, and why. Returns false if everything stays on the CPU, or goes back to it from a device that
    /// is lost. Null: no kernel supports this kind of study.
    std::function<bool(const spiked::cuda::Device& device, std::size_t threads, std::vector<std::string>& notes)>
        move_to;
    std::string backend = "cpu";  ///< name of the backend that computes
    bool mixed = false;           ///< whether a store of another backend may be resumed
    /// Preferred number of replicates per worker: consecutive batches of a cell are joined up to it. 0: a batch each.
    std::size_t replicates_per_worker = 0;
    /// For a study whose later cells depend on the results of earlier ones: takes notice of the cells of the store,
    /// which may be more than `cells`, and returns those that the results call for and the store lacks. It depends on
    /// the contents of the store alone, and returns nothing while a cell that it needs is not done. Called between
    /// batches only. Empty: the study has the cells that it begins with.
    std::function<std::vector<ExperimentCell>(Database& store)> grow;
    /// Where a study grows: takes notice of a cell behind `cells` from what the store keeps of it, so that a process
    /// without the store has a worker for it. A cell that is known already stays as it is. Not to be called while a
    /// worker is made or runs.
    std::function<void(std::size_t cell, const GrownCell& kept)> adopt;
    /// Returns the block of one replicate, for inspection; may be empty.
    std::function<arma::mat(std::size_t cell, std::uint64_t replicate)> block;
    /// Returns the arrays of replicate 0 of a cell that are stored; may be empty.
    std::function<std::vector<NamedArray>(std::size_t cell)> arrays;

    [[nodiscard]] std::string science_hash() const;
    /// The experiment after its devices are lost: computed on the CPU, into a store of any backend. Workers of the one
    /// that was moved to a device no longer exist.
    [[nodiscard]] Experiment on_cpu() const;
    /// Sum over all cells of the most replicates.
    [[nodiscard]] std::size_t replicates() const;
    /// Sum over all cells of the least replicates.
    [[nodiscard]] std::size_t least_replicates() const;
};

}  // namespace spiked::validation

template <>
struct spiked::EnumNames<spiked::validation::Relation> {
    using Relation = spiked::validation::Relation;
    static constexpr EnumName<Relation> table[] = {{Relation::at_least, "ge"},
                                                   {Relation::above, "gt"},
                                                   {Relation::at_most, "le"},
                                                   {Relation::below, "lt"},
                                                   {Relation::equal, "eq"}};
};
