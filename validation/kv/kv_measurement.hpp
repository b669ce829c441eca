#pragma once
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

}  // namespace spiked::validation
