#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "app/cli/command.hpp"
#include "app/studies/dry_run.hpp"
#include "app/studies/store_results.hpp"
#include "app/studies/study_run.hpp"
#include "app/studies/study_texts.hpp"
#include "core/device/device.hpp"
#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/figures.hpp"
#include "reports/tables/store_queries.hpp"
#include "validation/store/open_store.hpp"
#include "validation/study/study.hpp"

// Commands around a study file and its store: run, demo, init.
namespace spiked::app {
namespace {

namespace fs = std::filesystem;

validation::StudyOverrides read_overrides(const Arguments& arguments) {
    validation::StudyOverrides overrides;
    overrides.seed = arguments.text("--seed");
    // The kinds of figures are passed on, because the module that reads studies may not depend on that of figures.
    for (const auto& kind : reports::figure_kinds())
        overrides.figures.push_back({kind.entry.name, kind.options(), kind.of_dumps, kind.of_blocks});
    if (arguments.has("--set"))
        for (const auto& assignment : arguments.given.at("--set")) {
            const std::size_t equals = assignment.find('=');
            if (equals == std::string::npos || equals == 0)
                throw usage_error("--set \"{}\" is no assignment: write for example --set run.reps.min=1000",
                                  assignment);
            overrides.set.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
        }
    return overrides;
}

Json run_json(validation::Database& store, const std::string& path) {
    validation::Statement study(store, "SELECT name, kind, seed, status, science_hash, backend FROM study");
    (void)study.step();
    return Json::object({{"schema", "spiked.run/1"},
                         {"name", study.text(0)},
                         {"kind", study.text(1)},
                         {"seed", study.text(2)},
                         {"status", study.text(3)},
                         {"science_hash", study.text(4)},
                         {"backend", study.text(5)},
                         {"store", path},
                         {"replicates", store.integer("SELECT coalesce(sum(reps), 0) FROM batch")},
                         {"failed", store.integer("SELECT coalesce(sum(failed), 0) FROM batch")},
                         {"checks", reports::counts_json(count_verdicts(store))}});
}

/// The first lines of a long text, and where the rest is.
std::string beginning_of(const std::string& text, const std::string& store_path) {
    constexpr std::ptrdiff_t most = 200;
    const std::ptrdiff_t lines = std::count(text.begin(), text.end(), '\n');
    if (lines <= most) return text;
    std::size_t end = 0;
    for (std::ptrdiff_t line = 0; line < most; ++line) end = text.find('\n', end) + 1;
    return text.substr(0, end) +
           fmt::format("... {} more lines: spiked show {}\n", lines - most, shell_word(store_path));
}

/// Throws usage_error if the path in a study file, which may come from elsewhere, leads out of the current folder, also
/// through links.
void reject_path_outside(const std::string& study, const std::string& path) {
    std::error_code failure;
    const fs::path here = fs::canonical(".", failure);
    const fs::path target = fs::weakly_canonical(here / path, failure);
    const auto [end, rest] = std::mismatch(here.begin(), here.end(), target.begin(), target.end());
    // weakly_canonical does not follow a link to a file that does not exist, but a store would be made there.
    if (!failure && end == here.end() && !fs::is_symlink(path, failure) && !fs::path(path).is_absolute()) return;
    throw usage_error(
        "{}: [store] path \"{}\" leads out of the current folder (a study file may come from elsewhere): if that is "
        "intended, give it as -o {}",
        study, one_line(path), shell_word(path));
}

int run_into_store(const Arguments& arguments, validation::Study study, StudyRun run) {
    run.store_path = study.store_path;
    run.threads = study.threads;
    run.executor = executor_for(study.experiment, recipe_of(study.experiment));
    if (!arguments.has("--no-report"))
        run.report_path = page_beside(study.store_path, "add --no-report or choose another name with -o");
    print_note(arguments, one_line(study.experiment.title) + "\n" + plan_line(study.experiment, study.threads));
    move_to_device(arguments, study.experiment, run, study.device);
    return run_study(arguments, study.experiment, run, [&](validation::Database& store) {
        if (arguments.json())
            print_json(run_json(store, study.store_path));
        else
            print_text(beginning_of(results_text(store), study.store_path));
    });
}

int run_study_file(const Arguments& arguments) {
    const std::string& file = arguments.positionals.front();
    const StudyRun run = run_options(arguments);  // a dry run rejects the same options as the run
    if (fs::is_directory(file)) throw usage_error("{}: is a folder, not a study file: name the .toml file in it", file);
    validation::StudyOverrides overrides = read_overrides(arguments);
    validation::Study study = read_study(file, overrides);
    const auto names_store = [](const auto& assignment) { return assignment.first == "store.path"; };
    if (arguments.has("--output")) {
        study.store_path = arguments.text("--output");
        if (study.store_path == ":memory:")
            throw usage_error(
                "-o :memory: would keep the results in memory only, and lose them: name a file, FILE.spiked");
    } else if (std::none_of(overrides.set.begin(), overrides.set.end(), names_store))
        reject_path_outside(file, study.store_path);
    // A seed is drawn once: an existing store already has one.
    if (study.experiment.seed_source == "generated") {
        const std::string path = study.store_path;
        const std::string stored = fs::exists(path) ? validation::stored_seed(path) : "";
        if (!stored.empty() && overrides.seed == "fresh" && !arguments.has("--dry-run"))
            throw usage_error(
                "{}: the store has another seed ({}) than a fresh one: leave --seed fresh out to go on with it, or "
                "name another store with -o",
                path, stored);
        if (stored.empty() && arguments.has("--shard"))
            throw usage_error(
                "--shard {}: each part would draw a seed of its own (parts of different seeds cannot be merged): give "
                "the study a seed, or all parts the same --seed",
                arguments.text("--shard"));
        if (!stored.empty() && overrides.seed != "fresh") {
            overrides.seed = stored;
            study = read_study(file, overrides);
            study.store_path = path;
            study.experiment.seed_source = "generated";
        }
    }
    if (arguments.has("--threads")) study.threads = arguments.count("--threads");
    if (arguments.has("--device")) {
        study.device = arguments.text("--device");
        (void)spiked::cuda::choose_device(study.device);  // a device that is named must exist
    }
    if (arguments.has("--dry-run")) return dry_run_study(arguments, study);
    return run_into_store(arguments, std::move(study), run);
}

int demo(const Arguments& arguments) {
    validation::Study study = validation::parse_study(demo_study, "demo.toml");
    reject_derived_name(study.store_path);
    return run_into_store(arguments, std::move(study), run_options(arguments));
}

/// The text of `init` for each kind of study.
const std::map<std::string, const char*>& study_texts() {
    static const std::map<std::string, const char*> texts = {
        {"bbp", bbp_study}, {"kv", kv_study}, {"matrix", matrix_study}, {"null", null_study}};
    return texts;
}

int init(const Arguments& arguments) {
    const auto& texts = study_texts();
    const std::string kind = arguments.text("--kind");
    if (!arguments.positionals.empty() && texts.contains(arguments.positionals.front()))
        throw usage_error("init: \"{0}\" is a kind and would name a file: write --kind {0}",
                          arguments.positionals.front());
    const std::string path = arguments.positionals.empty() ? kind + ".toml" : arguments.positionals.front();
    std::map<std::string, std::string> files = {{path, texts.at(kind)}};
    std::string next = "spiked run " + shell_word(path);
    if (arguments.has("--slurm")) {
        std::string job = slurm_job;
        job.replace(job.find("STUDY.toml"), std::string("STUDY.toml").size(), shell_word(path));
        const std::string script = fs::path(path).replace_extension(".slurm").string();
        files.emplace(script, job);
        next = "sbatch " + shell_word(script);
    }
    for (const auto& [name, content] : files)
        if (fs::exists(name))
            throw output_error("{}: exists already (nothing is overwritten): give another name", name);
    Json written = Json::array();
    std::string names;
    for (const auto& [name, content] : files) {
        write_file(name, content);
        written.push(name);
        names += "wrote " + name + "\n";
    }
    if (kind == "kv" || kind == "matrix") next = "name your data as source in " + shell_word(path) + ", then " + next;
    if (arguments.json())
        print_json(
            Json::object({{"schema", "spiked.init/1"}, {"kind", kind}, {"file", path}, {"files", std::move(written)}}));
    else
        print_text(names + "next: " + next + "\n");
    return 0;
}

const OptionSpec junit = {"--junit", file_with({".xml"}), "write the checks as JUnit XML"};
const OptionSpec strict = {"--strict", {}, "exit 3 when a check is inconclusive"};
const OptionSpec no_report = {"--no-report", {}, "leave the HTML report out"};

}  // namespace

Command demo_command() {
    return {"demo",
            "run a study of about 20 seconds and write its store and report under results/",
            {"spiked demo"},
            {},
            0,
            0,
            {strict, no_report},
            demo};
}

Command run_command() {
    std::vector<OptionSpec> options = {
        {"-o,--output", file_with({".spiked"}, "STORE.spiked"),
         "store to write, or to resume; when not given, store.path of the study file"},
        {.key = "-n,--dry-run",
         .help = "check the file; estimate its cost and which checks it can decide",
         .excludes = {{"--junit", "--max-time", "--no-report", "--strict"}, "nothing is computed"}},
        {"--set", any_text("KEY=VALUE"), "set a key of the study file, written with dots", "", true},
        {"--seed", one_of_or({"fresh"}, "HEX"), "seed to use instead of the one in the file; fresh draws a new one"},
        no_report,
    };
    const auto where = in_group(
        where_and_how_long,
        {
            threads_option("results do", ""),
            device_option("device for computations that have GPU kernels: a GPU, several "
                          "(cuda:0,cuda:1), or emulated, which runs the kernels on the CPU, slowly, for checks",
                          "auto"),
            {"--mixed", {}, "resume a store that was begun on another device"},
            max_time_option(),
            shard_option(),
        });
    return {"run",
            "run a study file into its store, or resume it",
            {"spiked run study.toml", "spiked run study.toml -o long.spiked --set run.reps.min=1000 --threads 2",
             "spiked run study.toml --dry-run"},
            file_with({".toml"}, "STUDY.toml"),
            1,
            1,
            joined({options, where, in_group(verdicts_for_programs, {strict, junit})}),
            run_study_file};
}

Command init_command() {
    std::vector<std::string> kinds;
    for (const auto& [kind, text] : study_texts()) kinds.push_back(kind);
    return {"init",
            "write a commented study file to start from",
            {"spiked init --kind bbp", "spiked init --kind kv my-dump.toml"},
            file_with({".toml"}, "FILE.toml"),
            0,
            1,
            {{"--kind", one_of(std::move(kinds)), "kind of study", "bbp"},
             {"--slurm",
              {},
              "also write a job script that runs it with spiked-mpi (a package of its own, built where Open MPI is)"}},
            init};
}

}  // namespace spiked::app
