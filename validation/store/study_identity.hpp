#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "validation/store/experiment.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// Everything that must agree for two sets of batches to be parts of one study.
struct StudyIdentity {
    Json science;
    std::string science_hash;
    std::string seed;
    std::string backend;
    /// A line for each cell, stop rule and method, with its number. Different versions of the program may agree in
    /// `science` and differ in these.
    std::vector<std::string> plan;
};

[[nodiscard]] StudyIdentity identity_of(const Experiment& experiment);
/// Only the first `cells` cells count, because a study may grow. Throws input_error if the store holds no study.
[[nodiscard]] StudyIdentity identity_of(Database& store, std::size_t cells = std::numeric_limits<std::int64_t>::max());

/// The first few differences, for example `n: 128, now 256; seed: 0x1, now 0x2` if `between` is ", now "; empty if
/// there are none.
[[nodiscard]] std::string differences(const StudyIdentity& one, const StudyIdentity& other, std::string_view between);

}  // namespace spiked::validation
