#pragma once
#include <string>

#include "core/text/json.hpp"
#include "validation/kv/adequacy.hpp"

namespace spiked::reports {

/// Shares of rejected blocks by side and layer, what each test asks, and what the spectra look like. `heads` adds a
/// line a head.
[[nodiscard]] std::string adequacy_text(const validation::Adequacy& adequacy, bool heads);

/// `spiked.adequacy/1`; its fields are described in docs/MEASUREMENTS.md.
[[nodiscard]] Json adequacy_json(const validation::Adequacy& adequacy);

}  // namespace spiked::reports
