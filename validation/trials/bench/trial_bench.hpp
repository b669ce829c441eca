#pragma once
#include <vector>

#include "core/text/json.hpp"
#include "core/timing/stopwatch.hpp"

namespace spiked::validation {

struct TrialTimings {
    std::vector<Timing> rows;
    Json numpy;                  ///< what NumPy ran on
    std::vector<Json> outcomes;  ///< what each program found in the same draws
};

/// Times one trial (trial.hpp), in turn, one thread each:
///   spiked                        dense colouring, Haar rotation
///   spiked-eigenbasis-hadamard
///   numpy, numpy-eigh             trial_in_numpy.py with numpy.linalg.svd, with numpy.linalg.eigh of the Gram matrix
///   stage:...                     the steps of `spiked` by themselves (decompose with shrink inside), the next two of
///   spiked-eigenbasis-hadamard;
///                                 their sum is less than a trial, because each finds its data in the cache
/// Throws bug when a NumPy program finds something else in the same draws: only equal work is compared.
[[nodiscard]] TrialTimings time_trials(double seconds);

}  // namespace spiked::validation
