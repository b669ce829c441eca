#pragma once
#include <string>
#include <vector>

#include "validation/kv/open_dumps.hpp"
#include "validation/study/study_section.hpp"
#include "validation/trials/block_study.hpp"

namespace spiked::validation {

/// The values of `kind` in [model], in the order of the documentation.
[[nodiscard]] const std::vector<std::string>& model_kinds();

/// The cells of a study of generated blocks or matrix files: `model` at every point of the sweep (crossed or zipped,
/// without the points of its skip rules). Errors are added to `diagnostics` with their places; the list may then be
/// incomplete.
[[nodiscard]] std::vector<StudyPoint> read_points(const std::string& kind, const toml::table& model,
                                                  const toml::table* sweep, Diagnostics& diagnostics);

/// [model] kind = "kv_dump".
[[nodiscard]] KvPlan read_dump_model(const toml::table& model, Diagnostics& diagnostics);

}  // namespace spiked::validation
