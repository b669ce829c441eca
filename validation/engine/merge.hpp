#pragma once
#include <atomic>
#include <string>
#include <vector>

namespace spiked::validation {

/// Joins stores that hold parts of one study (shards, or runs on several machines) into a new one and judges it. The
/// order and grouping of the parts changes nothing but the file's layout on disk. Sessions and failures of all are
/// kept.
///
/// The new store is complete when every cell is done; `failed` when more of a cell's replicates failed than the
/// strictest failure budget of the parts allows; otherwise `incomplete`, and the study's run command goes on with it.
///
/// Throws usage_error when the parts are not of one study (seed, backend, science, methods and metrics must agree),
/// hold the same batch twice, or when the output is one of them; write_error when the output exists: nothing is
/// overwritten, and it appears whole or not at all. Error(ExitCode::stopped) soon after `stop` has become true.
void merge_stores(const std::vector<std::string>& parts, const std::string& output,
                  const std::atomic<bool>* stop = nullptr);

}  // namespace spiked::validation
