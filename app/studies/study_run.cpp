#include "app/studies/study_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <new>

#include "app/cli/build_info.hpp"
#include "app/cli/exit_code.hpp"
#include "app/cli/progress.hpp"
#include "app/cli/stop_requests.hpp"
#include "app/studies/validate_study.hpp"
#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/names.hpp"
#include "reports/page/html_report.hpp"
#include "reports/tables/store_text.hpp"
#include "reports/verdicts/junit.hpp"
#include "validation/engine/dry_run.hpp"
#include "validation/store/open_store.hpp"
#include "validation/trials/device_trials.hpp"
#include "validation/trials/parity.hpp"
#include "validation/verdicts/claim_study.hpp"

namespace spiked::app {
namespace {

/// Requests a stop when the time limit is reached.
class TimeLimit {
public:
    explicit TimeLimit(unsigned seconds) { alarm(seconds); }
    ~TimeLimit() { alarm(0); }
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;
};

void make_folder(const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    if (path == ":memory:" || folder.empty()) return;
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure)
        throw output_error("{}: the folder cannot be made ({}): choose another place", folder.string(),
                           failure.message());
}

RecipeExecutor& chosen_executor() {
    static RecipeExecutor executor;
    return executor;
}

/// Seconds in `90`, `90s`, `10m` or `4h`.
unsigned read_duration(const std::string& text) {
    if (text.empty()) return 0;
    const std::map<char, double> scales = {{'s', 1.0}, {'m', 60.0}, {'h', 3600.0}};
    const auto scale = scales.find(text.back());
    const auto number = to_number(scale == scales.end() ? text : text.substr(0, text.size() - 1));
    const double seconds = number.value_or(0.0) * (scale == scales.end() ? 1.0 : scale->second);
    if (!(seconds >= 1.0 && seconds < 1e9))
        throw usage_error("--max-time \"{}\" is not a time of a second or more: write for example 90s, 10m or 4h",
                          text);
    return static_cast<unsigned>(seconds);
}

ExitCode exit_code_of(validation::RunOutcome outcome, const validation::VerdictCounts& verdicts, bool strict) {
    if (outcome == validation::RunOutcome::too_many_failures) return ExitCode::too_many_failures;
    if (outcome == validation::RunOutcome::stopped) return ExitCode::stopped;
    // A shard gives no verdicts: checks are judged once, when the shards are merged.
    if (outcome == validation::RunOutcome::part_complete) return ExitCode::fine;
    if (verdicts.failed > 0) return ExitCode::check_failed;
    if (strict && verdicts.inconclusive > 0) return ExitCode::inconclusive;
    return ExitCode::fine;
}

/// Runs `work`; an exception is recorded in the store, as far as the store can still be written, and thrown again.
void record_failure(validation::Store& store, const std::string& status, const std::function<void()>& work) {
    const auto note = [&](ExitCode code, const std::string& why) {
        try {
            store.finish(status, static_cast<int>(code), why);
        } catch (const std::exception&) {
            // The first failure is the one to report.
        }
    };
    try {
        work();
    } catch (const Error& error) {
        note(exit_code(error.kind()), error.what());
        throw;
    } catch (const std::bad_alloc&) {
        note(ExitCode::out_of_memory, "out of memory");
        throw;
    } catch (const std::exception& error) {
        note(ExitCode::internal_error, error.what());
        throw;
    }
}

std::string status_of(validation::RunOutcome outcome, const validation::Shard& shard) {
    switch (outcome) {
        case validation::RunOutcome::complete:
            return "complete";
        case validation::RunOutcome::part_complete:
            return "shard " + shard.text();
        case validation::RunOutcome::stopped:
            return "stopped";
        default:
            return "failed";
    }
}

/// Prints notes on stop rules: cells that ran all their replicates without meeting them, and rules without effect.
void print_note_on_stopping(const Arguments& arguments, validation::Database& store) {
    const std::int64_t unmet =
        store.integer("SELECT count(*) FROM cell WHERE why = 'max' AND EXISTS (SELECT 1 FROM stop_rule)");
    if (unmet > 0)
        print_note(arguments,
                   fmt::format("{} of {} cells ran all their replicates without reaching the accuracy of until", unmet,
                               store.integer("SELECT count(*) FROM cell")));
    validation::Statement silent(
        store,
        "SELECT DISTINCT name FROM stop_rule JOIN metric USING(metric_id) WHERE EXISTS (SELECT 1 FROM batch) AND "
        "metric_id NOT IN (SELECT metric_id FROM moment) ORDER BY metric_id");
    while (silent.step())
        print_note(arguments,
                   fmt::format("until {}: no method of this study measures it, so it stopped nothing", silent.text(0)));
}

}  // namespace

Json recipe_of(const validation::Experiment& experiment) {
    return Json::object(
        {{"text", experiment.config_source}, {"seed", experiment.seed.text()}, {"set", experiment.config_set}});
}

validation::Experiment experiment_of(const Json& recipe) {
    try {
        auto experiment = recipe.find("text") != nullptr
                              ? validation::reread_study(text_of(recipe, "text"), *recipe.find("set"),
                                                         text_of(recipe, "seed"), "study")
                                    .experiment
                              : validate_experiment(recipe);
        if (experiment.science_hash() != text_of(recipe, "science_hash")) throw input_error("its files differ");
        return experiment;
    } catch (const Error& error) {
        // Rank 0 has read the same recipe without an error, so the recipe is not the cause.
        if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::input) throw;
        throw input_error("the study reads differently here than on rank 0 ({}): give every machine the same files",
                          error.what());
    }
}

void run_batches_with(RecipeExecutor executor) { chosen_executor() = std::move(executor); }

validation::BatchExecutor executor_for(const validation::Experiment& experiment, Json recipe) {
    if (!chosen_executor()) return {};
    recipe.set("science_hash", experiment.science_hash());
    return [recipe = std::move(recipe)](const auto& jobs, const auto& grown, const auto& finished, const auto& halted) {
        chosen_executor()(recipe, jobs, grown, finished, halted);
    };
}

OptionSpec shard_option() {
    return {"--shard", any_text("I/K"), "run part I of K into a store of its own; spiked merge joins them"};
}

OptionSpec max_time_option() {
    return {"--max-time", any_text("TIME"), "stop after 90s, 10m, 4h; the same command again resumes"};
}

StudyRun run_options(const Arguments& arguments) {
    StudyRun run{.strict = arguments.has("--strict"),
                 .junit_path = arguments.text("--junit"),
                 .seconds = read_duration(arguments.text("--max-time")),
                 .label = "replicates"};
    if (arguments.has("--shard")) run.shard = validation::Shard::parse(arguments.text("--shard"));
    for (const char* option : {"--junit", "--summary"})
        if (run.shard.of > 1 && arguments.has(option))
            throw usage_error(
                "--shard {}: {} has no place here (a part gives no verdicts): add it to the same command without "
                "--shard on the merged store",
                run.shard.text(), option);
    return run;
}

void move_to_device(const Arguments& arguments, validation::Experiment& experiment, const StudyRun& run,
                    const std::string& requested) {
    experiment.mixed = arguments.has("--mixed");
    std::string name = requested.empty() ? "auto" : requested;
    if (name == "auto" && run.executor) name = "cpu";
    if (name == "auto" && !experiment.mixed) {
        const std::string stored = validation::stored_backend(run.store_path);
        if (stored == "cpu" || stored == "emulated") name = stored == "emulated" ? stored : "cpu";
    }
    if (run.executor && name != "cpu")
        throw usage_error("--device {} is not possible here (ranks compute on CPUs): leave it out", name);
    spiked::cuda::Device device = spiked::cuda::choose_device(name);
    device.report = [&arguments](const std::string& text) { print_note(arguments, text); };
    if (!requested.empty() && !device.note.empty()) print_note(arguments, device.note);
    if (device.backend == spiked::cuda::Backend::cpu) return;
    // A GPU that the user did not name is only used if its numbers agree with the CPU's.
    if (name == "auto")
        for (const auto& check : validation::check_parity(device))
            if (!check.passed) {
                print_note(arguments, fmt::format("all is computed on the CPU: the GPU differs from it ({} of {}), see "
                                                  "spiked doctor --device cuda:0",
                                                  check.name, check.detail));
                return;
            }
    std::vector<std::string> notes;
    if (!experiment.move_to)
        notes.push_back(fmt::format("all is computed on the CPU, because {} have no kernels",
                                    experiment.kind == validation::claims_kind ? "claims" : "studies of dumps"));
    if (experiment.move_to && experiment.move_to(device, thread_count(run.threads), notes)) {
        experiment.backend = name_of(device.backend);
        if (device.backend == spiked::cuda::Backend::cuda)
            experiment.replicates_per_worker = validation::gpu_batch_size;
    }
    for (const auto& text : notes) print_note(arguments, text);
}

namespace {

/// A session of run_study.
int run_session(const Arguments& arguments, const validation::Experiment& experiment, const StudyRun& run,
                const std::function<void(validation::Database&)>& finished) {
    const std::size_t threads = thread_count(run.threads);
    if (!run.executor) validation::reject_beyond_memory(experiment, threads);
    make_folder(run.store_path);
    validation::Store store(run.store_path, experiment, command_line(), threads, build_json());
    if (store.resumed()) {
        const std::int64_t kept = store.database().integer("SELECT count(*) FROM batch");
        print_note(arguments, fmt::format("resuming {}: {} batches are kept", run.store_path, kept));
    }
    for (const auto& text : experiment.notes) print_note(arguments, text);
    const std::int64_t batches_before = store.database().integer("SELECT count(*) FROM batch");
    validation::RunOutcome outcome{};
    ExitCode code{};
    std::string status = "stopped";
    record_failure(store, status, [&] {
        {
            ProgressDisplay display(arguments, run.label);
            outcome =
                run_experiment(experiment, store,
                               {.threads = threads,
                                .stop = &stop_requests(),
                                .progress = [&](std::size_t done, std::size_t total) { display.show(done, total); },
                                .time_left = [&](double seconds) { display.expect(seconds); },
                                .begun = [&](std::size_t kept) { display.begin(kept); },
                                .shard = run.shard,
                                .executor = run.executor});
        }
        code = exit_code_of(outcome, run.verdicts(store.database()), run.strict);
        status = status_of(outcome, run.shard);
        store.finish(status, static_cast<int>(code), outcome == validation::RunOutcome::stopped ? "asked to stop" : "");
        if (finished) finished(store.database());
        if (!run.junit_path.empty()) {
            make_folder(run.junit_path);
            write_file(run.junit_path, reports::junit_xml(store.database()));
        }
        if (!run.report_path.empty()) {
            make_folder(run.report_path);
            reports::write_html_report({run.store_path}, run.report_path);
            print_note(arguments, fmt::format("report   {}", run.report_path));
        }
    });
    if (run.store_path != ":memory:") print_note(arguments, fmt::format("data     {}", run.store_path));
    if (outcome == validation::RunOutcome::stopped) {
        print_note(arguments,
                   run.store_path == ":memory:"
                       ? "stopped before the end, and nothing is kept: with -o STORE the same command would go on"
                       : "stopped before the end: run the same command again to go on");
        if (store.database().integer("SELECT count(*) FROM batch") == batches_before)
            print_note(arguments,
                       std::string("no batch was finished in this time: give it longer") +
                           (validation::holds_claims(store.database()) ? "" : ", or a smaller run.reps.batch"));
    }
    if (outcome == validation::RunOutcome::part_complete)
        print_note(arguments, fmt::format("shard {} is done; spiked merge joins it with the others", run.shard.text()));
    print_note_on_stopping(arguments, store.database());
    if (outcome == validation::RunOutcome::too_many_failures)
        print_note(arguments,
                   fmt::format("more than {} % of a cell's replicates failed: see spiked show {} --table failures",
                               100.0 * experiment.failure_budget, shell_word(run.store_path)));
    return static_cast<int>(code);
}

}  // namespace

int run_study(const Arguments& arguments, const validation::Experiment& experiment, const StudyRun& run,
              const std::function<void(validation::Database&)>& finished) {
    for (const auto& output : {run.report_path, run.junit_path}) keep_apart(output, run.store_path);
    take_stop_requests(!arguments.quiet());
    const TimeLimit limit(run.seconds);
    try {
        return run_session(arguments, experiment, run, finished);
    } catch (const validation::DevicesLost& lost) {
        if (!lost.cpu_may_go_on()) throw;
        print_note(arguments, fmt::format("{}: the CPU goes on", lost.reason()));
    }
    return run_session(arguments, experiment.on_cpu(), run, finished);
}

}  // namespace spiked::app
