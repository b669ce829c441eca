#include "app/study_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "app/build_info.hpp"
#include "app/progress.hpp"
#include "reports/html_report.hpp"
#include "reports/junit.hpp"
#include "reports/store_text.hpp"
#include "sim/output_file.hpp"
#include "theory/base/error.hpp"

namespace spiked::app {
namespace {

std::atomic<bool> stop_asked{false};

void ask_to_stop(int signal) {
    // A second request is obeyed at once; the store is valid at any moment.
    if (stop_asked.exchange(true) && signal != SIGALRM) {
        std::signal(signal, SIG_DFL);
        std::raise(signal);
    }
}

/// A time limit is a stop request at its end.
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
        throw write_error("{}: the folder cannot be made ({}): choose another place", folder.string(),
                          failure.message());
}

std::string& words_of_process() {
    static std::string words;
    return words;
}

ExitCode exit_code(validation::RunOutcome outcome, const validation::VerdictCounts& verdicts, bool strict) {
    if (outcome == validation::RunOutcome::too_many_failures) return ExitCode::too_many_failures;
    if (outcome == validation::RunOutcome::stopped) return ExitCode::stopped;
    if (verdicts.failed > 0) return ExitCode::check_failed;
    if (strict && verdicts.inconclusive > 0) return ExitCode::inconclusive;
    return ExitCode::fine;
}

}  // namespace

void take_stop_requests() {
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM}) std::signal(signal, ask_to_stop);
}

void remember_command_line(int argc, char** argv) {
    std::string& words = words_of_process();
    words = "spiked";
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool plain = !word.empty() && word.find_first_of(" '\"\\$*?;&|<>()[]{}") == std::string::npos;
        words += plain ? " " + word : " '" + word + "'";
    }
}

const std::string& command_line() { return words_of_process(); }

int run_study(const Arguments& arguments, const validation::Experiment& experiment, const StudyRun& run,
              const std::function<void(validation::Database&)>& finished) {
    for (const auto& output : {run.report_path, run.junit_path}) keep_apart(output, run.store_path);
    make_folder(run.store_path);
    const std::size_t threads = run.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : run.threads;
    validation::Store store(run.store_path, experiment, command_line(), threads, build_json());
    if (store.resumed()) {
        const std::int64_t kept = store.database().integer("SELECT count(*) FROM batch");
        remark(arguments, fmt::format("resuming {}: {} batches are kept", run.store_path, kept));
    }
    const TimeLimit limit(run.seconds);
    const validation::RunOutcome outcome = [&] {
        ProgressDisplay display(arguments, run.label);
        return run_experiment(experiment, store,
                              {.threads = threads,
                               .stop = &stop_asked,
                               .progress = [&](std::size_t done, std::size_t total) { display.show(done, total); }});
    }();
    const ExitCode code = exit_code(outcome, count_verdicts(store.database()), run.strict);
    const char* status = outcome == validation::RunOutcome::complete  ? "complete"
                         : outcome == validation::RunOutcome::stopped ? "stopped"
                                                                      : "failed";
    store.finish(status, static_cast<int>(code), outcome == validation::RunOutcome::stopped ? "asked to stop" : "");
    if (finished) finished(store.database());
    if (!run.junit_path.empty()) {
        make_folder(run.junit_path);
        sim::write_file(run.junit_path, reports::junit_xml(store.database()));
    }
    if (!run.report_path.empty()) {
        make_folder(run.report_path);
        reports::write_html_report(run.store_path, run.report_path);
        remark(arguments, fmt::format("report   {}", run.report_path));
    }
    if (run.store_path != ":memory:") remark(arguments, fmt::format("data     {}", run.store_path));
    if (outcome == validation::RunOutcome::stopped)
        remark(arguments, "stopped before the end: run the same command again to go on");
    if (outcome == validation::RunOutcome::too_many_failures)
        remark(arguments,
               fmt::format("more than {} % of a cell's replicates failed: see spiked show {} --table failures",
                           100.0 * experiment.failure_budget, run.store_path));
    return static_cast<int>(code);
}

}  // namespace spiked::app
