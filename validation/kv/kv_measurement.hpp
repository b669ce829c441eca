#pragma once
#include <string>
#include <vector>

#include "validation/kv/open_dumps.hpp"
#include "validation/store/experiment.hpp"
#include "validation/trials/block_study.hpp"

namespace spiked::validation {

/// Adds the inputs, methods, cells and worker of a dump study to an experiment whose name is set. A cell is one head of
/// one file, layer and side; its replicates are its full blocks. If attention is measured, a head is one batch, because
/// its whole sequence is coded for it. All names and files are checked before the first block is read. Throws
/// usage_error and input_error.
void make_dump_experiment(Experiment& experiment, const KvPlan& plan, const std::vector<NamedCodec>& codecs);

/// Whether a dump study measures errors of attention in at least one cell.
[[nodiscard]] bool measures_attention(const Experiment& experiment);

/// Codecs and cache methods from their names on the command line, each at all bit widths.
[[nodiscard]] std::vector<NamedCodec> named_codecs(const std::vector<std::string>& methods,
                                                   const std::vector<double>& bits);
[[nodiscard]] std::vector<NamedCache> named_caches(const std::vector<std::string>& methods,
                                                   const std::vector<double>& bits);

}  // namespace spiked::validation
