#pragma once
#include <string>

#include "theory/base/json.hpp"
#include "validation/equal_bits.hpp"
#include "validation/kv_table.hpp"

namespace spiked::reports {

/// The paper's table of compression quality, one block a side, for a terminal.
[[nodiscard]] std::string kv_text(const validation::KvTable& table, const validation::EqualBitsTable& equal);

/// The same with every digit, `spiked.kv/1`.
[[nodiscard]] Json kv_json(const validation::KvTable& table, const validation::EqualBitsTable& equal);

/// Errors that a frontier shows, by the names of their metrics: the first of them always, the others where measured.
[[nodiscard]] const std::vector<std::string>& frontier_metrics();
/// Every method and bit width by stored bits with these errors, the convex hull of one of them marked; then, where
/// asked, methods at one number of bits by the same.
[[nodiscard]] std::string frontier_text(const validation::KvTable& table, const std::string& metric,
                                        const std::vector<validation::EqualBits>& at);
/// The same, `spiked.frontier/1`.
[[nodiscard]] Json frontier_json(const validation::KvTable& table, const std::string& metric,
                                 const std::vector<validation::EqualBits>& at);

/// Bits an entry by item, every item present.
[[nodiscard]] Json ledger_json(const std::vector<double>& bits_per_entry);

}  // namespace spiked::reports
