#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validation/store/experiment.hpp"
#include "validation/store/sqlite.hpp"
#include "validation/verdicts/claim_verdicts.hpp"

// Claims as a study of the engine: a cell holds trials of one criterion at one size, and its methods are the criterion
// as stated and its controls. They are drawn trial by trial together, because a control often uses the block that its
// criterion has just decomposed.
namespace spiked::validation {

/// The method of the criterion itself; those of its controls have their names.
inline constexpr const char* as_stated = "as stated";

/// Interim analyses of the same trials: the second one, with four times as many trials, only where the first one was
/// inconclusive.
inline constexpr std::uint64_t interim_analyses = 2;
inline constexpr std::uint64_t extension = 4;

/// The trials of a criterion at one size that a cell holds.
struct ClaimCell {
    const Claim* claim = nullptr;
    const Criterion* criterion = nullptr;
    std::size_t size = 0;
    std::uint64_t first = 0;  ///< the trial of replicate 0
    std::uint64_t trials = 0;
    /// Controls by name, with the size of their faults as a part of the planted size. Empty: the criterion and all of
    /// its controls, with the planted faults.
    std::map<std::string, double> faults = {};
};

/// The cell as the store holds it. The label names claim, criterion, size, and what the trials are for.
[[nodiscard]] ExperimentCell experiment_cell(const ClaimCell& cell);

/// The numbers of trials in order, by control; those of the criterion itself have no name.
using ClaimTrials = std::map<std::string, std::vector<double>>;

/// The cells of a store of claims.
class ClaimStore {
public:
    struct Asked {
        ClaimCell cell;
        std::optional<std::size_t> at = {};  ///< position of the cell in the store; none if the store lacks it
        bool done = false;
    };

    /// Throws input_error for a store of another kind.
    explicit ClaimStore(Database& store);
    /// The tier, seed, false-alarm rate and claims that the trials were drawn for.
    [[nodiscard]] const ValidationPlan& plan() const { return plan_; }
    /// Number of comparisons of the whole tier, which share the false-alarm rate.
    [[nodiscard]] std::size_t comparisons() const { return comparisons_; }
    /// The sizes of the first analysis of a criterion, smallest first, with the numbers of trials for which the store
    /// was made, perhaps by a version of the program with other numbers; those of this version if the store has none.
    [[nodiscard]] std::vector<SizePlan> sizes_of(const Claim& claim, const Criterion& criterion) const;
    /// The trials of a cell; nothing if the store has not all of them. Takes note of the question.
    [[nodiscard]] std::optional<ClaimTrials> trials(const ClaimCell& cell);
    [[nodiscard]] const std::vector<Asked>& asked() const { return asked_; }

private:
    struct Held {
        std::size_t at = 0;
        bool done = false;
    };
    std::string path_;
    ValidationPlan plan_;
    std::size_t comparisons_ = 1;
    std::map<std::string, Held> cells_;  ///< by their params
    std::map<std::string, std::vector<SizePlan>> sizes_ =
        {};  ///< of analyses, by their params with size 0 in place of theirs
    std::vector<std::string> methods_;
    std::vector<Asked> asked_;
    Statement values_;
};

/// The study of the claims of a plan. Its first cells have the trials of the first analysis; second analyses and
/// searches for the closest faults add cells. Throws usage_error for an unknown id of a claim. `claims` are copied.
[[nodiscard]] Experiment claim_experiment(const ValidationPlan& plan, const std::vector<Claim>& claims);

/// Judges those of the claims of which a store has trials, by these alone. A claim of which it lacks a first analysis
/// is left out; second analyses and searches are made as far as it has them, so that another false-alarm rate than
/// that of the store needs no new draws and may leave more claims inconclusive. Without `share_faults` no closest
/// faults are searched among the trials of the store, which asks for no others.
[[nodiscard]] Validation judge_claims(ClaimStore& store, const std::vector<Claim>& claims, double false_alarm,
                                      bool share_faults = true);

// A store alone, with the claims of this program and perhaps claims on the dumps of the store, whose criteria need the
// dumps (claims_on_dumps). Other claims of the store are left out.

/// Whether a store holds trials of claims.
[[nodiscard]] bool holds_claims(Database& store);
/// The verdicts at the false-alarm rate of the store, or at that of judge_again. `claims` must outlive them.
[[nodiscard]] Validation stored_verdicts(Database& store, const std::vector<Claim>& claims);
/// The study of the store, with which any trial of these claims can be computed again.
[[nodiscard]] Experiment stored_claims(Database& store, const std::vector<Claim>& claims);

}  // namespace spiked::validation
