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
    unsigned seconds = 0;    ///< time limit, after which the run can be resumed; 0: no limit
    std::string label;       ///< label of the progress display
    validation::Shard shard = {};
    validation::BatchExecutor executor = {};  ///< empty: threads of this process
    /// The verdicts that the exit code follows.
    std::function<validation::VerdictCounts(validation::Database&)> verdicts = validation::count_verdicts;
};

/// The settings that --strict, --junit, --max-time and --shard determine.
[[nodiscard]] StudyRun run_options(const Arguments& arguments);
/// Headings of options that most calls leave out.
constexpr const char* where_and_how_long = "Where and how long it runs";
constexpr const char* verdicts_for_programs = "Verdicts for programs and CI";

[[nodiscard]] OptionSpec shard_option();
[[nodiscard]] OptionSpec max_time_option();

/// Moves an experiment to the requested device; an empty name and `auto` mean the device on which the store was begun.
/// Prints notes on what stays on the CPU. Throws usage_error for a device that cannot be used.
void move_to_device(const Arguments& arguments, validation::Experiment& experiment, const StudyRun& run,
                    const std::string& requested);

/// Makes or resumes the store, runs the experiment, judges its checks and writes the report. During this, SIGINT,
/// SIGTERM, SIGHUP and SIGUSR1 abandon the unfinished batches and leave a store that the same command resumes. Any
/// other error is recorded in the store, as far as it can still be written. If every device of `auto` is lost, the CPU
/// resumes the store, which then is one of mixed backends. `finished` is called with the open store before it is
/// closed. Returns the exit code of the study.
int run_study(const Arguments& arguments, const validation::Experiment& experiment, const StudyRun& run,
              const std::function<void(validation::Database&)>& finished = {});

// Batches that other processes run (`spiked-mpi`), each of which makes the experiment again from a recipe.

/// The recipe of the experiment of a study file; validate_recipe is that of `validate`.
[[nodiscard]] Json recipe_of(const validation::Experiment& experiment);
/// The experiment of a recipe, and the member `science_hash` that executor_for has added. Throws input_error if it is
/// not the same experiment, because the files of this machine differ.
[[nodiscard]] validation::Experiment experiment_of(const Json& recipe);

/// A BatchExecutor for the experiment of a recipe.
using RecipeExecutor = std::function<void(
    const Json& recipe, const std::vector<validation::BatchJob>& jobs, const validation::GrownCells& grown,
    const std::function<void(validation::Batch)>& finished, const std::function<bool()>& halted)>;
/// Runs the batches of `run` and `validate` by this one in place of the threads of this process.
void run_batches_with(RecipeExecutor executor);
/// Empty without such an executor.
[[nodiscard]] validation::BatchExecutor executor_for(const validation::Experiment& experiment, Json recipe);

}  // namespace spiked::app
