#pragma once
#include <string>
#include <utility>
#include <vector>

#include "validation/study/study.hpp"
#include "validation/study/study_section.hpp"
#include "validation/trials/block_study.hpp"

// The tables of a study file but [model] and [sweep]. Mistakes are noted with their place; then what is read may be
// short.
namespace spiked::validation {

[[nodiscard]] std::vector<NamedEstimator> read_estimators(Section& root, Diagnostics& diagnostics);
[[nodiscard]] std::vector<NamedCodec> read_codecs(Section& root, Diagnostics& diagnostics);

using CheckTables = std::vector<std::pair<Check, const toml::table*>>;
[[nodiscard]] CheckTables read_checks(Section& root, Diagnostics& diagnostics);
/// Conditions of checks name `factors`, what cells are told apart by.
void check_conditions(const CheckTables& checks, const std::vector<std::string>& factors, Diagnostics& diagnostics);
/// Every check asks something of some cell of the experiment, which gets them.
void add_checks(const CheckTables& checks, Experiment& experiment, Diagnostics& diagnostics);

/// [[figure]], for the experiment; what they may say is checked when the factors are known.
[[nodiscard]] std::vector<const toml::table*> read_figures(Section& root, Experiment& experiment,
                                                           Diagnostics& diagnostics);
void check_figures(bool dumps, const std::vector<std::string>& factors, const std::vector<const toml::table*>& tables,
                   const std::vector<FigureWords>& kinds, Diagnostics& diagnostics);

/// [run]: replicates, batches, stop rules and the budget of failures, for the experiment.
struct RunTable {
    Replicates replicates;
    std::string precision = "double";
};
[[nodiscard]] RunTable read_run(Section& root, Experiment& experiment, Diagnostics& diagnostics);
/// Every stop rule asks for what a method of the experiment measures.
void check_stop_rules(const toml::table& file, const Experiment& experiment, Diagnostics& diagnostics);

}  // namespace spiked::validation
