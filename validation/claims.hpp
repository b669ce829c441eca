#pragma once
#include <string>
#include <vector>

#include "theory/separable_law.hpp"

namespace spiked::validation {

/// Where a claim is asked: the law of the cell, its size, its spike, its codec.
struct ClaimPoint {
    const theory::SeparableLaw* law = nullptr;
    std::size_t rows = 0;
    std::size_t columns = 0;
    SignalStrength strength;  ///< of spike k
    unsigned bits = 0;        ///< of the codec
};

/// A statement of the theory as data: what is measured, what is predicted, and one planted fault that must be seen.
struct Claim {
    std::string id;
    std::string place;      ///< in the paper or the literature
    std::string statement;  ///< our words
    std::string control;    ///< the planted fault, in words
    std::string metric;
    std::string kind;   ///< whose metric: sample | codec
    std::string codec;  ///< base name of the codec; empty for others
    bool per_spike = false;
    /// Whether the claim says anything here.
    bool (*applies)(const ClaimPoint&);
    double (*predicted)(const ClaimPoint&);
    double (*with_fault)(const ClaimPoint&);
};

[[nodiscard]] const std::vector<Claim>& claims();
/// Throws nothing: null when there is none of that id.
[[nodiscard]] const Claim* find_claim(std::string_view id);

}  // namespace spiked::validation
