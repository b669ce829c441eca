#pragma once
#include <string>
#include <utility>
#include <vector>

#include "validation/study/study.hpp"
#include "validation/study/study_section.hpp"
#include "validation/trials/block_study.hpp"

// Readers for all tables of a study file except [model] and [sweep]. Errors are added to `diagnostics` with their
// places; the result may then be incomplete.
namespace spiked::validation {

[[nodiscard]] std::vector<NamedEstimator> read_estimators(Section& root, Diagnostics& diagnostics);
[[nodiscard]] std::vector<NamedCodec> read_codecs(Section& root, Diagnostics& diagnostics);

/// Rejects long names, because every cell stores the name of each method and check.
void reject_long_name(const toml::table& table, const std::string& key, const std::string& name,
                      Diagnostics& diagnostics);

using CheckTables = std::vector<std::pair<Check, const toml::table*>>;
[[nodiscard]] CheckTables read_checks(Section& root, Diagnostics& diagnostics);
/// A claim that the study states itself, [[claim]]: what the mean of a metric of one method is in the cells of its
/// check, or the exponent with which that mean changes over them.
struct OwnClaim {
    ClaimText text;
    std::string method;
    Prediction prediction;
};
/// Adds the checks of these claims, of the same names, to `checks`.
[[nodiscard]] std::vector<OwnClaim> read_claims(Section& root, CheckTables& checks, Diagnostics& diagnostics);
/// Adds the claims to the experiment, and to its cells what they predict.
void add_claims(const std::vector<OwnClaim>& claims, const CheckTables& checks, Experiment& experiment,
                Diagnostics& diagnostics);
/// Verifies that the conditions and exponents of the checks name only the given factors of the cells.
void check_conditions(const CheckTables& checks, const std::vector<std::string>& factors, Diagnostics& diagnostics);
/// Adds the checks to the experiment and verifies that each of them has a prediction in some cell.
void add_checks(const CheckTables& checks, Experiment& experiment, Diagnostics& diagnostics);

/// Adds the [[figure]] tables to the experiment and returns them for check_figures, which needs the factors of the
/// cells.
[[nodiscard]] std::vector<const toml::table*> read_figures(Section& root, Experiment& experiment,
                                                           Diagnostics& diagnostics);
void check_figures(bool dumps, const std::vector<std::string>& factors, const std::vector<const toml::table*>& tables,
                   const std::vector<FigureKeys>& kinds, Diagnostics& diagnostics);

/// The part of [run] that is not stored in the experiment.
struct RunTable {
    Replicates replicates;
    estimators::Precision precision = estimators::Precision::float64;
};
/// Reads [run]; batches, stop rules and the failure budget go into the experiment.
[[nodiscard]] RunTable read_run(Section& root, Experiment& experiment, Diagnostics& diagnostics);
/// Verifies that a method of the experiment measures the metric of each stop rule.
void check_stop_rules(const toml::table& file, const Experiment& experiment, Diagnostics& diagnostics);

}  // namespace spiked::validation
