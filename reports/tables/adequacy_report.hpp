#pragma once
#include <string>

#include "core/text/json.hpp"
#include "validation/kv/adequacy.hpp"

namespace spiked::reports {

/// The fraction of rejected blocks by side and layer, what each test rejects, and the shape of the spectra. With
/// `heads` the tables have a row for every head too.
[[nodiscard]] std::string adequacy_text(const validation::Adequacy& adequacy, bool heads);

/// JSON of schema `spiked.adequacy/1`. Its fields are described in docs/MEASUREMENTS.md.
[[nodiscard]] Json adequacy_json(const validation::Adequacy& adequacy);

}  // namespace spiked::reports
