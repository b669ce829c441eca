#pragma once
#include <string>

#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// The checks of a store as JUnit XML, which CI servers read: one test case per check, cell and spike. An inconclusive
/// check is a skipped case. A check whose negative control passes is a failure.
[[nodiscard]] std::string junit_xml(validation::Database& store);

}  // namespace spiked::reports
