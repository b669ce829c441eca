#include "validation/verdicts/claim_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/runtime/call_once.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "validation/store/open_store.hpp"
#include "validation/verdicts/claim_runs.hpp"

namespace spiked::validation {
namespace {

/// Trials in one commit.
constexpr std::size_t batch = 16;
/// Between the id of a claim and the dump that it is about; no id has blanks.
constexpr const char* on_dump = " on ";

/// The controls whose trials a cell has, with the size of their faults; the criterion itself has no name.
std::vector<std::pair<std::string, double>> runs_of(const ClaimCell& cell) {
    if (!cell.faults.empty()) return {cell.faults.begin(), cell.faults.end()};
    std::vector<std::pair<std::string, double>> runs{{"", 1.0}};
    for (const auto* controls : {&cell.criterion->negative_controls, &cell.criterion->positive_controls})
        for (const Control& control : *controls) runs.emplace_back(control.name, 1.0);
    return runs;
}

void reject_unknown_ids(const ValidationPlan& plan, const std::vector<Claim>& claims) {
    std::vector<std::string> ids;
    for (const auto& claim : claims)
        if (!claim.criteria.empty()) ids.push_back(claim.id);
    for (const auto& id : plan.claims)
        if (std::find(ids.begin(), ids.end(), id) == ids.end())
            throw usage_error(
                "unknown claim \"{}\"{}", id,
                id.find(' ') != std::string::npos ? ": separate several with commas" : suggestion(id, ids));
}

std::size_t comparisons_of(const std::vector<Claim>& claims, Tier tier) {
    std::size_t count = 0;
    for (const auto& claim : claims)
        for (const auto& criterion : claim.criteria) {
            const std::size_t sizes = plan_of(criterion, tier).size();
            count += (one_slope(criterion) ? std::min<std::size_t>(sizes, 1) : sizes) *
                     (1 + criterion.negative_controls.size() + criterion.positive_controls.size());
        }
    return std::max<std::size_t>(count, 1);
}

/// Large blocks come first, so that no thread is left with a large one at the end.
std::vector<ClaimCell> large_first(std::vector<ClaimCell> cells) {
    std::stable_sort(cells.begin(), cells.end(),
                     [](const ClaimCell& a, const ClaimCell& b) { return a.size > b.size; });
    return cells;
}

std::vector<ClaimCell> first_cells(const ValidationPlan& plan, const std::vector<Claim>& claims) {
    std::vector<ClaimCell> cells;
    for (const Claim& claim : claims) {
        if (!plan.judges(claim)) continue;
        for (const Criterion& criterion : claim.criteria)
            for (const auto& [size, trials] : plan_of(criterion, plan.tier))
                cells.push_back({.claim = &claim, .criterion = &criterion, .size = size, .first = 0, .trials = trials});
    }
    return large_first(std::move(cells));
}

/// The cells that a run draws, with their trials once a worker needs them.
class DrawnCells {
public:
    /// Adds to `methods`, the first ones of the store.
    DrawnCells(const ValidationPlan& plan, const std::vector<Claim>& claims, std::vector<ExperimentMethod>& methods)
        : plan_(plan), claims_(claims) {
        for (const ExperimentMethod& method : methods) methods_.emplace(method.name, methods_.size());
        const auto number_of = [&](const std::string& name) {
            const auto [found, fresh] = methods_.try_emplace(name, methods_.size());
            if (fresh) methods.push_back({.name = name, .kind = "sample", .base = name, .bits = {}});
            return found->second;
        };
        (void)number_of(as_stated);
        for (const Claim& claim : claims_)
            if (plan_.judges(claim))
                for (const Criterion& criterion : claim.criteria)
                    for (const auto& [control, fault] : runs_of({.claim = &claim, .criterion = &criterion}))
                        (void)number_of(control.empty() ? as_stated : control);
        for (ClaimCell& cell : first_cells(plan_, claims_)) first_.push_back(std::move(cell));
        for (std::size_t i = 0; i < first_.size(); ++i) take(i, first_[i]);
    }

    [[nodiscard]] std::vector<ExperimentCell> cells() const {
        std::vector<ExperimentCell> cells;
        for (const ClaimCell& cell : first_) cells.push_back(experiment_cell(cell));
        return cells;
    }

    [[nodiscard]] Experiment::Worker worker(std::size_t at) const {
        const auto found = cells_.find(at);
        if (found == cells_.end())
            throw input_error(
                "cell {} is of no claim that this program has (it is about a dump that is not where it was, or another "
                "version made the store): run the command that made it",
                at + 1);
        return [this, drawn = found->second](std::uint64_t replicate) {
            drawn->ready([&] { prepare(*drawn); });
            std::vector<Observation> values;
            values.reserve(drawn->trials.size());
            for (const auto& [method, trial] : drawn->trials)
                values.push_back({method, metric_index("trial"), 0, trial(drawn->cell.first + replicate)});
            return values;
        };
    }

    /// Takes notice of a cell of the store; of no claim that is known, it gets no trials.
    void adopt(std::size_t at, const GrownCell& kept) {
        if (cells_.contains(at)) return;
        if (const auto cell = cell_of(kept)) take(at, *cell);
    }

    void forget() { cells_.clear(); }
    void adopt_all(Database& database) {
        Statement cell(database, "SELECT cell_id, params, reps_target FROM cell");
        while (cell.step())
            adopt(static_cast<std::size_t>(cell.integer(0) - 1),
                  {cell.text(1), static_cast<std::uint64_t>(cell.integer(2))});
    }

    [[nodiscard]] std::vector<ExperimentCell> grow(Database& database) {
        adopt_all(database);
        ClaimStore store(database);
        (void)judge_claims(store, claims_, plan_.false_alarm, false);
        auto next = static_cast<std::size_t>(database.integer("SELECT count(*) FROM cell"));
        std::vector<ClaimCell> absent;
        bool waiting = false;
        for (const ClaimStore::Asked& one : store.asked()) {
            if (!one.at) absent.push_back(one.cell);
            waiting = waiting || (one.at && !one.done);
        }
        std::vector<ExperimentCell> added;
        if (waiting) return added;
        // Bisections depend on second analyses.
        if (std::any_of(absent.begin(), absent.end(), [](const ClaimCell& cell) { return cell.first > 0; }))
            std::erase_if(absent, [](const ClaimCell& cell) { return cell.first == 0; });
        for (const ClaimCell& cell : large_first(std::move(absent))) {
            take(next++, cell);
            added.push_back(experiment_cell(cell));
        }
        return added;
    }

private:
    struct Drawn {
        ClaimCell cell;
        CallOnce ready = {};
        std::vector<std::pair<std::size_t, Trial>> trials = {};  ///< by method
    };

    void take(std::size_t at, const ClaimCell& cell) {
        auto drawn = std::make_shared<Drawn>();
        drawn->cell = cell;
        cells_[at] = std::move(drawn);
    }
    /// The inverse of experiment_cell, from what it gives to a store; nothing for another claim or criterion.
    [[nodiscard]] std::optional<ClaimCell> cell_of(const GrownCell& kept) const {
        const Json params = Json::parse(kept.params, "params of a cell", 8);
        const auto whole = [&](const char* key) -> std::optional<std::uint64_t> {
            const Json* found = params.find(key);
            if (found == nullptr || found->integer() == nullptr || *found->integer() < 0) return std::nullopt;
            return static_cast<std::uint64_t>(*found->integer());
        };
        const std::string on = text_of(params, "on");
        for (const Claim& claim : claims_)
            for (const Criterion& criterion : claim.criteria) {
                ClaimCell cell{.claim = &claim,
                               .criterion = &criterion,
                               .size = static_cast<std::size_t>(whole("size").value_or(0)),
                               .first = whole("first").value_or(0),
                               .trials = kept.replicates};
                if (claim.id != text_of(params, "claim") || claim.on != on ||
                    criterion.name != text_of(params, "criterion"))
                    continue;
                if (const Json* faults = params.find("faults"); faults != nullptr && faults->members() != nullptr)
                    for (const auto& [control, part] : *faults->members())
                        if (part.real() != nullptr && methods_.contains(control))
                            cell.faults.emplace(control, *part.real());
                if (experiment_cell(cell).params.text() == kept.params) return cell;
            }
        return std::nullopt;
    }
    void prepare(Drawn& drawn) const {
        const ClaimCell& cell = drawn.cell;
        const std::string address = fmt::format("claim {} {} {}", cell.claim->id, cell.criterion->name, cell.size);
        for (const auto& [control, fault] : runs_of(cell))
            drawn.trials.emplace_back(methods_.at(control.empty() ? as_stated : control),
                                      cell.criterion->prepare({cell.size, control, plan_.seed, address, fault}));
    }

    ValidationPlan plan_;
    std::vector<Claim> claims_;
    std::map<std::string, std::size_t> methods_;
    std::vector<ClaimCell> first_;
    std::map<std::size_t, std::shared_ptr<Drawn>> cells_;  ///< by position in the store
};

}  // namespace

ExperimentCell experiment_cell(const ClaimCell& cell) {
    ExperimentCell found;
    found.label = fmt::format("{} {} {}", cell.claim->id, cell.criterion->name, cell.size);
    if (!cell.claim->on.empty()) found.label += " on " + cell.claim->on;
    found.rows = found.columns = cell.size;
    found.params = Json::object(
        {{"claim", cell.claim->id}, {"criterion", cell.criterion->name}, {"size", cell.size}, {"first", cell.first}});
    if (!cell.claim->on.empty()) found.params.set("on", cell.claim->on);
    if (cell.first > 0) found.label += " second analysis";
    if (!cell.faults.empty()) {
        Json faults = Json::object();
        found.label += " with faults";
        for (const auto& [control, part] : cell.faults) {
            faults.set(control, part);
            found.label += fmt::format(" {}={}", control, part);
        }
        found.params.set("faults", std::move(faults));
    }
    found.replicates = cell.trials;
    found.factors = {{"claim", {}, cell.claim->id},
                     {"criterion", {}, cell.criterion->name},
                     {"size", static_cast<double>(cell.size), fmt::format("{}", cell.size)}};
    return found;
}

ClaimStore::ClaimStore(Database& store)
    : path_(store.path()),
      values_(store,
              "SELECT method_id, v FROM value WHERE cell_id = ? AND metric_id = (SELECT metric_id FROM metric WHERE "
              "name = 'trial') AND k = 0 ORDER BY method_id, rep") {
    Statement study(store, "SELECT kind, config_resolved, seed, false_alarm FROM study");
    if (!study.step() || study.text(0) != claims_kind)
        throw input_error("{}: not a store of claims: name one that spiked validate -o made", store.path());
    const Json science = Json::parse(study.text(1), store.path() + ": config_resolved", 64);
    const Json* tier = science.find("tier");
    const Json* claims = science.find("claims");
    const Json* comparisons = science.find("comparisons");
    const auto known = tier != nullptr && tier->string() != nullptr ? find_enum<Tier>(*tier->string()) : std::nullopt;
    if (!known || claims == nullptr || claims->items() == nullptr || comparisons == nullptr ||
        comparisons->integer() == nullptr)
        throw damaged_store(store.path(), "its settings are not those of claims");
    plan_.tier = *known;
    plan_.seed = stream::StudySeed::parse(study.text(2));
    plan_.false_alarm = study.real(3);
    comparisons_ = static_cast<std::size_t>(std::max<std::int64_t>(1, *comparisons->integer()));
    for (const Json& id : *claims->items())
        if (id.string() != nullptr) plan_.claims.push_back(id.string()->substr(0, id.string()->find(on_dump)));
    Statement cell(store, "SELECT cell_id, params, state, reps_target FROM cell");
    while (cell.step()) {
        cells_[cell.text(1)] = {static_cast<std::size_t>(cell.integer(0) - 1), cell.text(2) == "done"};
        Json params = Json::parse(cell.text(1), "params of a cell", 8);
        const Json* size = params.find("size");
        if (size == nullptr || size->integer() == nullptr) continue;
        const auto rows = static_cast<std::size_t>(*size->integer());
        sizes_[params.set("size", 0).text()].push_back({rows, static_cast<std::uint64_t>(cell.integer(3))});
    }
    for (auto& [criterion, sizes] : sizes_)
        std::sort(sizes.begin(), sizes.end(), [](const SizePlan& a, const SizePlan& b) { return a.size < b.size; });
    Statement method(store, "SELECT name FROM method ORDER BY method_id");
    while (method.step()) methods_.push_back(method.text(0) == as_stated ? "" : method.text(0));
}

std::vector<SizePlan> ClaimStore::sizes_of(const Claim& claim, const Criterion& criterion) const {
    const auto held = sizes_.find(experiment_cell({.claim = &claim, .criterion = &criterion}).params.text());
    return held != sizes_.end() ? held->second : plan_of(criterion, plan_.tier);
}

std::optional<ClaimTrials> ClaimStore::trials(const ClaimCell& cell) {
    const std::string params = experiment_cell(cell).params.text();
    const auto held = cells_.find(params);
    Asked asked{cell};
    if (held != cells_.end()) asked.at = held->second.at, asked.done = held->second.done;
    asked_.push_back(asked);
    if (!asked.done) return std::nullopt;
    ClaimTrials found;
    values_.bind(1, *asked.at + 1);
    while (values_.step()) {
        if (values_.is_text(1)) throw damaged_store(path_, "a trial is no number");
        found[methods_.at(static_cast<std::size_t>(values_.integer(0) - 1))].push_back(values_.real(1));
    }
    values_.reset();
    for (const auto& [control, fault] : runs_of(cell))
        if (found[control].size() != cell.trials)
            throw input_error(
                "cell {} of the store has {} of the {} trials of {} (it was changed by hand, or another version made "
                "it with other controls): start again with another store",
                *asked.at + 1, found[control].size(), cell.trials, control.empty() ? as_stated : control);
    return found;
}

namespace {

/// The study, whose methods begin with the given ones; and its cells.
std::pair<Experiment, std::shared_ptr<DrawnCells>> drawn_experiment(const ValidationPlan& plan,
                                                                    const std::vector<Claim>& claims,
                                                                    std::vector<ExperimentMethod> methods) {
    Experiment experiment;
    experiment.methods = std::move(methods);
    experiment.name = "validate";
    experiment.title = fmt::format("claims, {} tier", enum_name(plan.tier));
    experiment.kind = claims_kind;
    experiment.config_source = "spiked validate";
    Json ids = Json::array();
    for (const Claim& claim : claims)
        if (plan.judges(claim)) ids.push(claim.on.empty() ? claim.id : claim.id + on_dump + claim.on);
    experiment.science = Json::object({{"spiked", 1},
                                       {"kind", std::string(claims_kind)},
                                       {"tier", std::string(enum_name(plan.tier))},
                                       {"claims", std::move(ids)},
                                       {"false_alarm", plan.false_alarm},
                                       {"comparisons", comparisons_of(claims, plan.tier)}});
    experiment.seed = plan.seed;
    experiment.false_alarm = plan.false_alarm;
    experiment.batch = batch;
    experiment.failure_budget = 0.0;
    const auto drawn = std::make_shared<DrawnCells>(plan, claims, experiment.methods);
    experiment.cells = drawn->cells();
    experiment.worker = [drawn](std::size_t cell, ReplicateRange) { return drawn->worker(cell); };
    experiment.grow = [drawn](Database& store) { return drawn->grow(store); };
    experiment.adopt = [drawn](std::size_t cell, const GrownCell& kept) { drawn->adopt(cell, kept); };
    return {std::move(experiment), drawn};
}

}  // namespace

Experiment claim_experiment(const ValidationPlan& plan, const std::vector<Claim>& claims) {
    reject_unknown_ids(plan, claims);
    return drawn_experiment(plan, claims, {}).first;
}

bool holds_claims(Database& store) {
    Statement study(store, "SELECT kind FROM study");
    return study.step() && study.text(0) == claims_kind;
}

Validation stored_verdicts(Database& store, const std::vector<Claim>& claims) {
    ClaimStore trials(store);
    return judge_claims(trials, claims, trials.plan().false_alarm);
}

Experiment stored_claims(Database& store, const std::vector<Claim>& claims) {
    std::vector<ExperimentMethod> methods;
    Statement method(store, "SELECT name FROM method ORDER BY method_id");
    while (method.step())
        methods.push_back({.name = method.text(0), .kind = "sample", .base = method.text(0), .bits = {}});
    auto [experiment, drawn] = drawn_experiment(ClaimStore(store).plan(), claims, std::move(methods));
    // The store may have other cells at the positions of the first ones, where it has claims that are not among these.
    drawn->forget();
    drawn->adopt_all(store);
    return std::move(experiment);
}

}  // namespace spiked::validation
