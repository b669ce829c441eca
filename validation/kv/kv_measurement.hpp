#pragma once
#include <string>
#include <vector>

#include "validation/engine/experiment.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/trials/block_study.hpp"

namespace spiked::validation {

/// Adds inputs, methods, cells (a file, layer, side and head each; replicates are its full blocks) and the worker of a
/// dump study to an experiment that has its name. Where attention is measured a head is one batch, because its whole
/// sequence is coded for it. Every name and file is checked before the first block is read. Throws
/// usage_error and input_error.
void make_dump_experiment(Experiment& experiment, const KvPlan& plan, const std::vector<NamedCodec>& codecs);

/// Codecs as the command line names them.
[[nodiscard]] std::vector<NamedCodec> named_codecs(const std::vector<std::string>& methods,
                                                   const std::vector<double>& bits);
[[nodiscard]] std::vector<NamedCache> named_caches(const std::vector<std::string>& methods,
                                                   const std::vector<double>& bits);

}  // namespace spiked::validation
