#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "validation/store/experiment.hpp"
#include "validation/store/sqlite.hpp"

// One replicate of a store, computed again.
namespace spiked::validation {

/// The position in a study of the cell with this number (from 1), this label, or a hash that begins with these 8 or
/// more characters. Throws usage_error if the store has no such cell, or several.
[[nodiscard]] std::size_t find_cell(Database& store, const std::string& name);

/// A value that was computed again.
struct ReplayedValue {
    Observation now;
    double stored = std::numeric_limits<double>::quiet_NaN();  ///< NaN also for a missing value that is kept
    bool kept = false;                                         ///< whether the store has it
    bool same = false;                                         ///< whether it is the stored one, up to the tolerance
};

struct Replay {
    std::string failure;         ///< why the replicate fails now; empty: it does not, and has values
    std::string stored_failure;  ///< why it failed in the store; empty: no failure is stored
    std::vector<ReplayedValue> values;

    [[nodiscard]] std::size_t compared() const {
        return static_cast<std::size_t>(
            std::count_if(values.begin(), values.end(), [](auto& one) { return one.kept; }));
    }
    [[nodiscard]] std::size_t differing() const {
        return static_cast<std::size_t>(
            std::count_if(values.begin(), values.end(), [](auto& one) { return one.kept && !one.same; }));
    }
};

/// Backends differ in the last digits: values within this of each other are the same, relative to the larger of 1 and
/// the stored value.
inline constexpr double tolerance_between_backends = 1e-3;

/// Computes a replicate of the experiment of a store and compares it with what the store keeps of it. Missing values
/// are the same only as each other. Throws the errors of the experiment that do not fail a replicate.
[[nodiscard]] Replay replay(Database& store, const Experiment& experiment, std::size_t cell, std::uint64_t replicate,
                            double tolerance);

}  // namespace spiked::validation
