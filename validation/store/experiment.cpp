#include "validation/store/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"

namespace spiked::validation {

std::string format_of(const std::string& path) {
    const std::string suffix = std::filesystem::path(path).extension().string();
    return suffix.empty() ? "unknown" : suffix.substr(1);
}

std::string ExperimentCell::hash() const { return hex(sha256(params.text())); }

static bool holds(Relation relation, double number, double limit) {
    switch (relation) {
        case Relation::at_least:
            return number >= limit;
        case Relation::above:
            return number > limit;
        case Relation::at_most:
            return number <= limit;
        case Relation::below:
            return number < limit;
        case Relation::equal:
            return number == limit;
    }
    throw precondition_error("an unknown relation");
}

bool hold(const std::vector<FactorCondition>& conditions, const std::vector<Factor>& factors) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const FactorCondition& condition) {
        const auto of = std::find_if(factors.begin(), factors.end(),
                                     [&](const Factor& factor) { return factor.name == condition.factor; });
        if (of == factors.end()) return false;
        if (!condition.relation) return of->text == condition.text;
        return of->number && holds(*condition.relation, *of->number, condition.number);
    });
}

double Check::margin(const ExperimentCell& cell, double expected) const {
    const double side = static_cast<double>(std::min(cell.rows, cell.columns));
    return (margin_absolute + margin_relative * std::abs(expected)) * std::pow(side / 128.0, rate_exponent);
}

AcceptanceRegion Check::region(const ExperimentCell& cell, const Prediction& prediction) const {
    return prediction.region ? *prediction.region : around(prediction.value, margin(cell, prediction.value));
}

bool of_dumps_or_models(std::string_view kind) { return kind == "kv_dump" || kind == "kv_model"; }

std::string Experiment::science_hash() const { return hex(sha256(science.text())); }

Experiment Experiment::on_cpu() const {
    Experiment moved = *this;
    std::vector<std::string> none;
    if (move_to) (void)move_to({}, 1, none);
    moved.backend = name_of(spiked::cuda::Backend::cpu);
    moved.mixed = true;
    moved.replicates_per_worker = 0;
    return moved;
}

std::size_t Experiment::replicates() const {
    std::size_t sum = 0;
    for (const auto& cell : cells) sum += cell.replicates;
    return sum;
}

std::size_t Experiment::least_replicates() const {
    if (until.empty()) return replicates();
    std::size_t sum = 0;
    for (const auto& cell : cells) sum += cell.least();
    return sum;
}

}  // namespace spiked::validation
