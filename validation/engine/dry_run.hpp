#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "validation/store/experiment.hpp"

namespace spiked::validation {

/// Numbers of questions (comparisons of one mean) that a check can decide, if the means agree with the theory.
struct CheckForecast {
    std::string check;
    std::size_t questions = 0;
    std::size_t reachable = 0;  ///< the interval at the last replicate decides the question and its negative control
    std::size_t without_power = 0;  ///< the planted defect lies inside the margin, for any number of replicates
    std::size_t untried = 0;        ///< too few values for a forecast
    // For the question that needs most replicates among those with power, if its values have no skewness (a dry
    // run has too few values to estimate it):
    std::string cell;
    double half_width = 0.0;   ///< of its interval at the last replicate
    double room = 0.0;         ///< bound on the half width: the margin, or the distance from it to the planted defect
    std::uint64_t needed = 0;  ///< replicates at which the half width is below that bound
};

/// The cell with the largest blocks, and the memory that workers need for them.
struct LargestCell {
    std::size_t rows = 0, columns = 0;
    std::size_t at_once = 1;  ///< workers that hold such blocks at once: one for each thread, or for each replicate
    std::uint64_t bytes = 0;  ///< of one worker, about
    std::uint64_t least_bytes = 0;  ///< a lower bound on that
};
/// Forecasts the largest cell of a study; all numbers are 0 where it has no cells.
[[nodiscard]] LargestCell largest_cell(const Experiment& experiment, std::size_t threads);

/// Cost of a study, and which of its checks it can decide.
struct Forecast {
    std::size_t cells_tried = 0;
    std::uint64_t replicates_tried = 0;
    double least_seconds = 0.0;      ///< wall-clock time if every cell stops at its least number of replicates
    double most_seconds = 0.0;       ///< wall-clock time if no cell stops early
    std::uint64_t memory_bytes = 0;  ///< of the process, about
    LargestCell largest;
    std::uint64_t store_bytes = 0;  ///< upper bound
    std::vector<CheckForecast> checks;
};

/// Runs the first replicates of every cell (at most 8, small cells first) into a store in memory, on `threads` threads,
/// and discards them. No cell is started that is expected to end after `seconds`. The cost of a cell that was not tried
/// is extrapolated from the largest that was, in proportion to n d min(n, d). Blocks throw the same errors as in a run.
[[nodiscard]] Forecast dry_run(const Experiment& experiment, std::size_t threads, double seconds);

/// Throws an Error of the kind memory if a lower bound on the memory that concurrent replicates of the study need
/// exceeds the memory that this process may use.
void reject_beyond_memory(const Experiment& experiment, std::size_t threads);
/// The same for blocks of one size on the given number of threads.
void reject_beyond_memory(std::size_t rows, std::size_t columns, std::size_t threads);

}  // namespace spiked::validation
