#pragma once
#include <string>

#include "validation/engine/sqlite.hpp"

namespace spiked::reports {

/// The checks of a store as JUnit XML, one test case a check, cell and spike: what CI servers read. An inconclusive
/// check is a skipped case; one whose control passes is a failure.
[[nodiscard]] std::string junit_xml(validation::Database& store);

}  // namespace spiked::reports
