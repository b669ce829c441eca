#pragma once
#include <string>

#include "reports/tables/store_queries.hpp"
#include "validation/engine/sqlite.hpp"

namespace spiked::reports {

/// What the study was made from and by: its command and files, seed, build, inputs and sessions.
[[nodiscard]] std::string reproduce_markup(validation::Database& store, const StudyRow& study);

/// What to write where its numbers are used.
[[nodiscard]] std::string cite_markup(validation::Database& store, const StudyRow& study);

}  // namespace spiked::reports
