#pragma once
#include <string>
#include <vector>

#include "validation/kv/open_dumps.hpp"
#include "validation/study/study_section.hpp"
#include "validation/trials/block_study.hpp"

namespace spiked::validation {

/// What the blocks of a study come from: `kind` in [model].
enum class ModelKind { spiked, counts, kv_like, kv_dump, matrix };

/// The cells of a study of generated blocks or matrix files: `model` at every point of the sweep (crossed or zipped,
/// without the points of its skip rules). Errors are added to `diagnostics` with their places; the list may then be
/// incomplete.
[[nodiscard]] std::vector<StudyPoint> read_points(ModelKind kind, const toml::table& model, const toml::table* sweep,
                                                  Diagnostics& diagnostics);

/// [model] kind = "kv_dump".
[[nodiscard]] KvPlan read_dump_model(const toml::table& model, Diagnostics& diagnostics);

}  // namespace spiked::validation

/// In the order of the documentation.
template <>
struct spiked::EnumNames<spiked::validation::ModelKind> {
    using ModelKind = spiked::validation::ModelKind;
    static constexpr EnumName<ModelKind> table[] = {{ModelKind::spiked, "spiked"},
                                                    {ModelKind::counts, "counts"},
                                                    {ModelKind::kv_like, "kv_like"},
                                                    {ModelKind::kv_dump, "kv_dump"},
                                                    {ModelKind::matrix, "matrix"}};
};
