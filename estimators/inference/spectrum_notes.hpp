#pragma once
#include <span>
#include <string>
#include <vector>

namespace spiked::estimators {

/// Sentences for users on what a spectrum shows of the assumptions behind every estimate from it: a gap in its bulk
/// (`bulk_gap`), and fewer entries seen than `share_trusted`. `singular_values`: all of them, descending; `share_seen`:
/// the fraction of entries that are not missing, 1 where all are known. Cost O(number of values).
[[nodiscard]] std::vector<std::string> spectrum_notes(std::span<const double> singular_values, double share_seen);

}  // namespace spiked::estimators
