#pragma once
#include <atomic>
#include <string>
#include <vector>

namespace spiked::validation {

/// Joins stores that hold parts of one study (shards, or runs on several machines) into a new store and judges it.
/// Parts may number metrics differently. Order and grouping of the parts affect only the layout of the file on disk.
/// Sessions and failures of all parts are kept.
///
/// The status of the new store is `complete` if every cell is done; `failed` if more replicates of a cell failed than
/// the strictest failure budget of the parts allows; otherwise `incomplete`, and the run command of the study continues
/// it.
///
/// Throws usage_error if the parts are not of one study (seed, backend, science and methods must agree), if
/// two hold the same batch, or if the output is one of them; output_error if the output exists, because nothing is
/// overwritten; and Error(ErrorKind::stopped) soon after `stop` has become true. The output appears completely or not
/// at all.
void merge_stores(const std::vector<std::string>& parts, const std::string& output,
                  const std::atomic<bool>* stop = nullptr);

}  // namespace spiked::validation
