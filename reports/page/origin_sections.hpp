#pragma once
#include <string>

#include "reports/tables/store_queries.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// The origin of the results: command, study file, seed, build, inputs and sessions.
[[nodiscard]] std::string reproduce_markup(validation::Database& store, const StudyRow& study);

/// The text for citing the results.
[[nodiscard]] std::string cite_markup(validation::Database& store, const StudyRow& study);

}  // namespace spiked::reports
