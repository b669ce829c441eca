#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "validation/claims/claims.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/study/command_studies.hpp"

namespace spiked::app {

/// The study of a call of `validate`, and what it is about.
struct ValidateStudy {
    std::vector<validation::Claim> claims;
    std::shared_ptr<const validation::OpenDumps> dumps;  ///< null without
    validation::Experiment experiment;
};

/// `settings` say how the dumps are read (dump_settings).
[[nodiscard]] ValidateStudy validate_study(const validation::ValidationPlan& plan,
                                           const std::vector<std::string>& dumps, const Json& settings,
                                           const validation::CommandOrigin& origin);

/// The recipe of the same study for other processes (study_run.hpp), and the study of such a recipe.
[[nodiscard]] Json validate_recipe(const validation::ValidationPlan& plan, const std::vector<std::string>& dumps,
                                   const Json& settings);
[[nodiscard]] validation::Experiment validate_experiment(const Json& recipe);

/// The names of the dumps (OpenDumps::name_of).
[[nodiscard]] std::vector<std::string> names_of_dumps(const validation::OpenDumps& dumps);

}  // namespace spiked::app
