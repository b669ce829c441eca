#pragma once
#include <string>

#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// The checks of a store for a terminal: claim, cell, estimate(standard error), theory, margin, smallest detectable
/// deviation, verdict and control; then `18 passed, 0 failed, 2 inconclusive; nominal false-alarm rate for the whole
/// run 1e-06`.
[[nodiscard]] std::string checks_text(validation::Database& store);

}  // namespace spiked::reports
