#pragma once
#include <string>

#include "theory/base/json.hpp"
#include "validation/kv_measurement.hpp"

namespace spiked::reports {

/// The paper's table of compression quality, one block a side, for a terminal.
[[nodiscard]] std::string kv_text(const validation::KvTable& table);

/// The same with every digit, `spiked.kv/1`.
[[nodiscard]] Json kv_json(const validation::KvTable& table);

/// Bits an entry by item, every item present.
[[nodiscard]] Json ledger_json(const std::vector<double>& bits_per_entry);

}  // namespace spiked::reports
