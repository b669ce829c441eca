#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "theory/laws/separable_law.hpp"

namespace spiked::validation {

/// Where a claim is asked by a study: the law of the cell, its size, its spike, its codec.
struct ClaimPoint {
    const theory::SeparableLaw* law = nullptr;
    std::size_t rows = 0;
    std::size_t columns = 0;
    SignalStrength strength;  ///< of spike k
    unsigned bits = 0;        ///< of the codec
};

/// A claim as the check of a study: which metric, what is predicted of it, and one planted fault that must be seen.
struct StudyForm {
    std::string control;  ///< the planted fault, in words
    std::string metric;
    std::string kind;   ///< whose metric: sample | codec
    std::string codec;  ///< base name of the codec; empty for others
    bool per_spike = false;
    /// Whether the claim says anything here.
    bool (*applies)(const ClaimPoint&);
    double (*predicted)(const ClaimPoint&);
    double (*with_fault)(const ClaimPoint&);
};

/// The claims that a study can check in its own cells, by id, in the order of the table of claims: the questions of a
/// store stand in it.
[[nodiscard]] const std::vector<std::pair<std::string, StudyForm>>& study_forms();

}  // namespace spiked::validation
