#pragma once
#include <string>
#include <vector>

#include "validation/kv/dump_study.hpp"

namespace spiked::validation {

/// Decides where inner products with the dumped queries and attention are measured. Returns what is left out only
/// because nobody says which keys a query sees, a line for each dump.
[[nodiscard]] std::vector<std::string> find_queries(DumpStudy& study);

/// What coding a head does to attention, for the queries of each block of the range. Keys are measured with exact and
/// with coded values, values with exact keys.
[[nodiscard]] std::vector<std::vector<Observation>> measure_attention(const DumpStudy& study, const StudiedHead& at,
                                                                      ReplicateRange range);

}  // namespace spiked::validation
