#pragma once
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "validation/kv/equal_bits.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/kv/spectrum_references.hpp"

namespace spiked::reports {

/// The paper's table of compression quality for a terminal, one table for keys and one for values.
[[nodiscard]] std::string kv_text(const validation::KvTable& table, const validation::EqualBitsTable& equal);

/// The same with every digit, as JSON of schema `spiked.kv/1`.
[[nodiscard]] Json kv_json(const validation::KvTable& table, const validation::EqualBitsTable& equal);

/// The methods of one group at equal bits: one row per method, an error and a ratio per bit level. The texts are not
/// escaped.
struct EqualBitsRows {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> rows;
    std::string outside;  ///< a sentence with the methods that are not compared; empty where all are compared
};
[[nodiscard]] EqualBitsRows equal_bits_rows(const validation::EqualBitsTable& equal, const std::string& group);

/// The dumps that a table was measured on: one line per dump for a terminal, one object per dump as JSON.
[[nodiscard]] std::string inputs_text(const std::vector<validation::KvInput>& inputs);
[[nodiscard]] Json inputs_json(const std::vector<validation::KvInput>& inputs);

/// Every method and bit width in the order of stored bits, with the errors of frontier_metrics; a star marks the convex
/// hull of `metric`. Then the methods of `at`, which compares them at one number of bits, the best first, and the
/// references of the side.
[[nodiscard]] std::string frontier_text(const validation::KvTable& table, const std::string& metric,
                                        const std::vector<validation::EqualBits>& at,
                                        const std::vector<validation::SpectrumReference>& references = {});
/// The same as JSON of schema `spiked.frontier/1`.
[[nodiscard]] Json frontier_json(const validation::KvTable& table, const std::string& metric,
                                 const std::vector<validation::EqualBits>& at,
                                 const std::vector<validation::SpectrumReference>& references = {});
/// A list of one object for each point of each reference; a figure of the kind `frontier` draws it as `references`.
[[nodiscard]] Json references_json(const std::vector<validation::SpectrumReference>& references);
/// The errors of a side's references, a column for each number of bits. Empty where there are none.
[[nodiscard]] std::string references_text(const std::vector<validation::SpectrumReference>& references,
                                          std::string_view side);

/// A table of the items that hold bits, and the total.
[[nodiscard]] std::string ledger_text(const estimators::PerItem<double>& bits_per_entry);
/// Stored bits per entry of every item, also of those without bits.
[[nodiscard]] Json ledger_json(const estimators::PerItem<double>& bits_per_entry);

}  // namespace spiked::reports
