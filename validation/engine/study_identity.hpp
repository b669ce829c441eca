#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "validation/engine/experiment.hpp"
#include "validation/engine/sqlite.hpp"

namespace spiked::validation {

/// What must agree for two sets of batches to be parts of one study.
struct StudyIdentity {
    Json science;
    std::string science_hash;
    std::string seed;
    std::string backend;
    /// Cells, stop rules and methods with their numbers, a line each: programs of different versions may agree in the
    /// science and differ in these.
    std::vector<std::string> plan;
};

[[nodiscard]] StudyIdentity identity_of(const Experiment& experiment);
/// Throws input_error when the store holds no study.
[[nodiscard]] StudyIdentity identity_of(Database& store);

/// The first few differences, as `n: 128, now 256; seed: 0x1, now 0x2` with ", now " between; empty when there are
/// none.
[[nodiscard]] std::string differences(const StudyIdentity& one, const StudyIdentity& other, std::string_view between);

}  // namespace spiked::validation
