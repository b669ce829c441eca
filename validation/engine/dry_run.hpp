#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "validation/engine/experiment.hpp"

namespace spiked::validation {

/// What a check will be able to tell, if its means lie where the theory says.
struct CheckForecast {
    std::string check;
    std::size_t questions = 0;
    std::size_t reachable = 0;  ///< the interval at the last replicate is narrower than the margin, for the control too
    std::size_t blind = 0;      ///< the planted fault lies inside the margin: no number of replicates tells it
    std::size_t untried = 0;    ///< too few values to say
    // Of the question that is hardest to answer among those that are not blind:
    std::string cell;
    double half_width = 0.0;   ///< of its interval at the last replicate
    double room = 0.0;         ///< what the half width has to stay below: the margin, or the way from it to the fault
    std::uint64_t needed = 0;  ///< replicates at which it does
};

/// What running a study would take and could show.
struct Forecast {
    std::size_t cells_tried = 0;
    std::uint64_t replicates_tried = 0;
    double least_seconds = 0.0;  ///< by the clock, where no stop rule asks for more than its least
    double most_seconds = 0.0;
    std::uint64_t memory_bytes = 0;  ///< of the process
    std::uint64_t store_bytes = 0;   ///< at most
    std::vector<CheckForecast> checks;
};

/// Runs the first replicates of every cell (at most 8, small cells first) into a store in memory, on `threads` threads,
/// and throws them away; no cell is begun that would end after `seconds`. Cells that were not reached are taken to cost
/// n d min(n, d) as much as the largest that was. Errors of the blocks are those of a run.
[[nodiscard]] Forecast dry_run(const Experiment& experiment, std::size_t threads, double seconds);

/// Throws an Error of exit code 7 for a study of which even a part of what a replicate holds at once is more than this
/// process may have.
void reject_beyond_memory(const Experiment& experiment, std::size_t threads);
/// The same of blocks of one size on so many threads.
void reject_beyond_memory(std::size_t rows, std::size_t columns, std::size_t threads);

}  // namespace spiked::validation
