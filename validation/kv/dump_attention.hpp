#pragma once
#include <string>
#include <vector>

#include "validation/kv/dump_study.hpp"

namespace spiked::validation {

/// Decides for which heads inner products with the dumped queries and attention are measured. Returns one note for each
/// dump whose attention is not measured because neither its metadata nor the options state the attention mask.
[[nodiscard]] std::vector<std::string> find_queries(DumpStudy& study);

/// Measures how coding a head changes attention, for the queries of each block of the range. Coded keys are combined
/// with exact and with coded values, coded values with exact keys.
[[nodiscard]] std::vector<std::vector<Observation>> measure_attention(const DumpStudy& study, const StudiedHead& at,
                                                                      ReplicateRange range);

}  // namespace spiked::validation
