#pragma once
#include <optional>
#include <vector>

#include "validation/study/study_section.hpp"
#include "validation/trials/block_study.hpp"

namespace spiked::validation {

/// Reads a [model] table. Errors are added to `diagnostics`; the source is then missing.
using ModelReader = std::optional<BlockSource> (*)(const toml::table& model, Diagnostics& diagnostics);

/// `model` at every point of the sweep (crossed or zipped, without the points of its skip rules), or as it is written
/// where `sweep` is null. Errors are added to `diagnostics` with their places; the list may then be incomplete.
[[nodiscard]] std::vector<StudyPoint> points_of_sweep(ModelReader read, const toml::table& model,
                                                      const toml::table* sweep, Diagnostics& diagnostics);

/// Adds the factors n and d, which figures and checks may use whether they are swept or not, and a label.
void complete_factors(StudyPoint& point);

}  // namespace spiked::validation
