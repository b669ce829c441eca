#pragma once
#include <functional>
#include <string>

#include "app/cli/command.hpp"
#include "validation/engine/engine.hpp"
#include "validation/study/study.hpp"

namespace spiked::app {

/// The options of commands that run an experiment into a store.
struct StudyRun {
    std::string store_path;   ///< ":memory:" keeps nothing
    std::string report_path;  ///< empty: no report
    std::size_t threads = 0;
    bool strict = false;
    std::string junit_path;  ///< empty: none
    unsigned seconds = 0;    ///< stop after so long, resumable; 0: no limit
    std::string label;       ///< of the progress
    validation::Shard shard = {};
    validation::BatchExecutor executor = {};  ///< threads when there is none
};

/// Moves an experiment to the device that these words choose; empty words, and `auto`, go on where the store was begun.
/// Says what stays on the CPU. Throws usage_error for a device that cannot be used.
void move_to_device(const Arguments& arguments, validation::Experiment& experiment, const StudyRun& run,
                    const std::string& typed);

/// Makes or resumes the store, runs, judges, writes the report. From here on SIGINT, SIGTERM, SIGHUP and SIGUSR1 give
/// up the batches under way and leave a store that the same command takes up again. Whatever else ends the run is noted
/// in the store too, as far as it can still be written. `finished` is called with the open store before it is closed.
/// Returns the exit code of the study.
int run_study(const Arguments& arguments, const validation::Experiment& experiment, const StudyRun& run,
              const std::function<void(validation::Database&)>& finished = {});

/// Who runs the batches of a study file instead of the threads of this process (`spiked-mpi`).
using StudyExecutor =
    std::function<void(const validation::Study&, const std::vector<validation::BatchJob>&,
                       const std::function<void(validation::Batch)>& finished, const std::function<bool()>& halted)>;
void run_batches_with(StudyExecutor executor);
[[nodiscard]] validation::BatchExecutor executor_for(const validation::Study& study);

}  // namespace spiked::app
