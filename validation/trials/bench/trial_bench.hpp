#pragma once
#include <vector>

#include "core/text/json.hpp"
#include "core/timing/stopwatch.hpp"

namespace spiked::validation {

struct TrialTimings {
    std::vector<Timing> rows;
    Json numpy;                  ///< versions of NumPy and its libraries
    std::vector<Json> outcomes;  ///< results of each program on the same draws
};

/// Times one trial (trial.hpp) by each of these programs in turn, one thread each:
///   spiked                        dense colouring, Haar rotation
///   spiked-eigenbasis-hadamard    colouring in the eigenbasis, Hadamard rotation
///   numpy, numpy-eigh             trial_in_numpy.py with numpy.linalg.svd, with numpy.linalg.eigh of the Gram matrix
///   stage:...                     the single steps of `spiked` (decompose includes shrink); the last two stages are
///   those
///                                 of spiked-eigenbasis-hadamard. The sum is less than a trial, because the data of
///                                 each step is in the cache.
/// Throws postcondition_error if a NumPy program gets another result from the same draws, because only equal work may
/// be compared.
[[nodiscard]] TrialTimings time_trials(double seconds);

}  // namespace spiked::validation
