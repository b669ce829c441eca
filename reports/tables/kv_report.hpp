#pragma once
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "validation/kv/equal_bits.hpp"
#include "validation/kv/kv_table.hpp"

namespace spiked::reports {

/// The paper's table of compression quality, one block a side, for a terminal.
[[nodiscard]] std::string kv_text(const validation::KvTable& table, const validation::EqualBitsTable& equal);

/// The same with every digit, `spiked.kv/1`.
[[nodiscard]] Json kv_json(const validation::KvTable& table, const validation::EqualBitsTable& equal);

/// Methods below each other, bit levels beside each other, of one group; what stands in `lines` is to be escaped.
struct EqualBitsLines {
    std::vector<std::string> heads;
    std::vector<std::vector<std::string>> lines;
    std::string outside;  ///< who is not compared, as a sentence; empty where all are
};
[[nodiscard]] EqualBitsLines equal_bits_lines(const validation::EqualBitsTable& equal, const std::string& group);

/// The dumps of a table: a line each for a terminal, an object each.
[[nodiscard]] std::string inputs_text(const std::vector<validation::KvInput>& inputs);
[[nodiscard]] Json inputs_json(const std::vector<validation::KvInput>& inputs);

/// Every method and bit width by stored bits with the errors of frontier_metrics, the convex hull of one marked; then,
/// where asked, methods at one number of bits by the same.
[[nodiscard]] std::string frontier_text(const validation::KvTable& table, const std::string& metric,
                                        const std::vector<validation::EqualBits>& at);
/// The same, `spiked.frontier/1`.
[[nodiscard]] Json frontier_json(const validation::KvTable& table, const std::string& metric,
                                 const std::vector<validation::EqualBits>& at);

/// Bits an entry by item.
[[nodiscard]] std::vector<double> per_entry(const estimators::Ledger& ledger, std::uint64_t entries);
/// The items that hold any, and all together: a line each.
[[nodiscard]] std::string ledger_text(const std::vector<double>& bits_per_entry);
/// Bits an entry by item, every item present.
[[nodiscard]] Json ledger_json(const std::vector<double>& bits_per_entry);

}  // namespace spiked::reports
