#pragma once
#include <string>
#include <vector>

#include "validation/kv/open_dumps.hpp"
#include "validation/study/study_section.hpp"
#include "validation/trials/block_study.hpp"

namespace spiked::validation {

/// What [model] kind may be, in the order of the documentation.
[[nodiscard]] const std::vector<std::string>& model_kinds();

/// The cells of a study whose blocks are made or read whole: `model` at every point of the sweep (crossed or zipped,
/// without the points of its skip rules). Mistakes are noted with their place; then the list may be short.
[[nodiscard]] std::vector<StudyPoint> read_points(const std::string& kind, const toml::table& model,
                                                  const toml::table* sweep, Diagnostics& diagnostics);

/// [model] kind = "kv_dump".
[[nodiscard]] KvPlan read_dump_model(const toml::table& model, Diagnostics& diagnostics);

}  // namespace spiked::validation
