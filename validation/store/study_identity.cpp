#include "validation/store/study_identity.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/error.hpp"

namespace spiked::validation {
namespace {

constexpr std::size_t differences_named = 4;
constexpr std::size_t longest_value = 60;

void add_differences(const Json* one, const Json* other, const std::string& path, std::string_view between,
                     std::vector<std::string>& to) {
    if (to.size() >= differences_named) return;
    const std::string first = one == nullptr ? "absent" : one->text();
    const std::string second = other == nullptr ? "absent" : other->text();
    if (first == second) return;
    const auto* items = one == nullptr ? nullptr : one->items();
    const auto* other_items = other == nullptr ? nullptr : other->items();
    if (items != nullptr && other_items != nullptr && items->size() == other_items->size()) {
        for (std::size_t i = 0; i < items->size(); ++i)
            add_differences(&(*items)[i], &(*other_items)[i], fmt::format("{}[{}]", path, i + 1), between, to);
        return;
    }
    if (one != nullptr && other != nullptr && one->members() != nullptr && other->members() != nullptr) {
        const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
        for (const auto& [key, value] : *one->members())
            add_differences(&value, other->find(key), below(key), between, to);
        for (const auto& [key, value] : *other->members())
            if (one->find(key) == nullptr) add_differences(nullptr, &value, below(key), between, to);
        return;
    }
    // Long lists of different lengths often begin alike.
    const auto short_text = [](const std::string& whole, const Json::Array* list) {
        if (whole.size() <= longest_value) return whole;
        return list == nullptr ? whole.substr(0, longest_value - 3) + "..." : fmt::format("{} items", list->size());
    };
    const std::string values =
        fmt::format(": {}{}{}", short_text(first, items), between, short_text(second, other_items));
    // The cells of some studies repeat what `science` states for all of them.
    const auto named = [&](const std::string& place) { return place.ends_with(values); };
    if (path.starts_with("cells[") && std::any_of(to.begin(), to.end(), named)) return;
    to.push_back(path + values);
}

/// The lines of StudyIdentity::plan.
std::string cell_line(std::size_t index, std::string_view hash, std::size_t least, std::size_t most) {
    return fmt::format("cell {} {}: {} to {} replicates", index + 1, hash.substr(0, 12), least, most);
}
std::string rule_line(std::string_view metric, double relative, double absolute) {
    return fmt::format("until {}: {} of the mean, {}", metric, relative, absolute);
}
std::string method_line(std::size_t index, std::string_view name) {
    return fmt::format("method {}: {}", index + 1, name);
}

}  // namespace

StudyIdentity identity_of(const Experiment& experiment) {
    StudyIdentity identity{
        experiment.science, experiment.science_hash(), experiment.seed.text(), experiment.backend, {}};
    auto& plan = identity.plan;
    plan.push_back(fmt::format("batches of {}", experiment.batch));
    for (std::size_t c = 0; c < experiment.cells.size(); ++c) {
        const auto& cell = experiment.cells[c];
        plan.push_back(cell_line(c, cell.hash(), cell.least(), cell.replicates));
    }
    for (const auto& rule : experiment.until)
        plan.push_back(rule_line(metrics()[rule.metric].name, rule.relative, rule.absolute));
    for (std::size_t m = 0; m < experiment.methods.size(); ++m)
        plan.push_back(method_line(m, experiment.methods[m].name));
    return identity;
}

StudyIdentity identity_of(Database& store, std::size_t cells) {
    Statement study(store, "SELECT config_resolved, science_hash, seed, backend, batch_reps FROM study");
    if (!study.step())
        throw input_error("{}: the store holds no study (its creation was never finished): delete it", store.path());
    StudyIdentity identity{Json::parse(study.text(0), store.path() + ": config_resolved", 64),
                           study.text(1),
                           study.text(2),
                           study.text(3),
                           {}};
    auto& plan = identity.plan;
    plan.push_back(fmt::format("batches of {}", study.integer(4)));
    const auto index = [](const Statement& row) { return static_cast<std::size_t>(row.integer(0) - 1); };
    Statement cell(store,
                   "SELECT cell_id, cell_hash, reps_least, reps_target FROM cell WHERE cell_id <= ? ORDER BY cell_id");
    cell.bind(1, cells);
    while (cell.step())
        plan.push_back(cell_line(index(cell), cell.text(1), static_cast<std::size_t>(cell.integer(2)),
                                 static_cast<std::size_t>(cell.integer(3))));
    Statement rule(store,
                   "SELECT name, relative, absolute FROM stop_rule JOIN metric USING(metric_id) ORDER BY rule_id");
    while (rule.step()) plan.push_back(rule_line(rule.text(0), rule.real(1), rule.real(2)));
    Statement method(store, "SELECT method_id, name FROM method ORDER BY 1");
    while (method.step()) plan.push_back(method_line(index(method), method.text(1)));
    return identity;
}

std::string differences(const StudyIdentity& one, const StudyIdentity& other, std::string_view between) {
    std::vector<std::string> places;
    const auto differ = [&](const std::string& what, const std::string& first, const std::string& second) {
        if (first != second && places.size() < differences_named)
            places.push_back(fmt::format("{}{}{}{}", what, first, between, second));
    };
    differ("seed: ", one.seed, other.seed);
    differ("backend: ", one.backend, other.backend);
    if (one.science_hash != other.science_hash) {
        add_differences(&one.science, &other.science, "", between, places);
        if (places.empty()) differ("science: ", one.science_hash, other.science_hash);
    }
    // The plan is compared only if `science` agrees, because it would repeat those differences.
    for (std::size_t i = 0; places.empty() && i < std::max(one.plan.size(), other.plan.size()); ++i)
        differ("", i < one.plan.size() ? one.plan[i] : "absent", i < other.plan.size() ? other.plan[i] : "absent");
    return fmt::format("{}", fmt::join(places, "; "));
}

}  // namespace spiked::validation
