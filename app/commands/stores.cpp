#include <fmt/format.h>

#include "app/cli/command.hpp"
#include "app/cli/exit_code.hpp"
#include "app/cli/stop_requests.hpp"
#include "app/studies/stored_claims.hpp"
#include "app/studies/study_run.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/claim_report.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "reports/verdicts/comparison.hpp"
#include "sim/io/npy.hpp"
#include "validation/engine/compare.hpp"
#include "validation/engine/engine.hpp"
#include "validation/engine/judge.hpp"
#include "validation/engine/merge.hpp"
#include "validation/engine/replay.hpp"
#include "validation/store/open_store.hpp"
#include "validation/study/study.hpp"
#include "validation/verdicts/claim_comparison.hpp"
#include "validation/verdicts/claim_study.hpp"

// Commands on finished stores: merge, compare, replay.
namespace spiked::app {
namespace {

int merge(const Arguments& arguments) {
    const std::string output = arguments.text("--output");
    if (output.empty()) throw usage_error("merge: -o is missing (the store to make): add for example -o whole.spiked");
    take_stop_requests(!arguments.quiet());
    validation::merge_stores(arguments.positionals, output, &stop_requests());
    validation::Database store = validation::open_store(output);
    validation::Statement study(store, "SELECT status FROM study");
    (void)study.step();
    const std::string status = study.text(0);
    std::string shown_status = one_line(status);
    std::size_t lacking = 0;
    const bool of_claims = validation::holds_claims(store);
    validation::VerdictCounts verdicts = validation::count_verdicts(store);
    if (of_claims) {
        const auto claims = claims_of(arguments, store);
        const auto found = validation::stored_verdicts(store, claims);
        verdicts = counts_of(found);
        lacking = found.lacking;
        if (lacking > 0) {
            shown_status += fmt::format(" except for {}", reports::counted(lacking, "cell"));
            print_note(arguments, reports::lacking_cells(lacking, "the parts") +
                                      ": the validate command of the parts, without --shard and with -o " +
                                      shell_word(output) + ", goes on with them");
        }
    }
    const std::int64_t replicates = store.integer("SELECT coalesce(sum(reps), 0) FROM batch");
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.merge/1"},
                                 {"store", output},
                                 {"status", status},
                                 {"replicates", replicates},
                                 {"lacking", lacking},
                                 {"checks", reports::counts_json(verdicts)}}));
    else
        print_text(fmt::format("{} replicates, {}; {}: {}\ndata     {}\n", replicates, shown_status,
                               of_claims ? "claims" : "checks", reports::counts_text(verdicts), output));
    if (status == "failed") return static_cast<int>(ExitCode::too_many_failures);
    return static_cast<int>(verdicts.failed > 0 && status == "complete" ? ExitCode::check_failed : ExitCode::fine);
}

/// Prints what a comparison found, as text or as JSON.
template <class Found>
int print_comparison(const Arguments& arguments, const Found& found) {
    const auto& names = arguments.positionals;
    if (arguments.json())
        print_json(reports::comparison_json(found));
    else
        print_text(reports::comparison_text(found, {names[0], names[1]}, arguments.has("--all")));
    return 0;
}

int compare(const Arguments& arguments) {
    const auto& paths = arguments.positionals;
    validation::Database a = validation::open_store(paths[0]);
    validation::Database b = validation::open_store(paths[1]);
    const auto rate = false_alarm_of(arguments);
    for (auto* store : {&a, &b}) {
        store->execute("BEGIN");  // consistent states, even while runs write to them
        if (rate) validation::judge_at_rate(*store, *rate);
    }
    if (!validation::holds_claims(a) || !validation::holds_claims(b))
        return print_comparison(arguments, validation::compare_stores(a, b));
    const auto claims_a = claims_of(arguments, a);
    const auto claims_b = claims_of(arguments, b);
    return print_comparison(arguments, validation::compare_claims(a, claims_a, b, claims_b));
}

/// Prints why the replicate failed now, and whether it failed the same way in the store.
int report_failure(const Arguments& arguments, const std::string& cell, std::size_t replicate,
                   const validation::Replay& found) {
    const auto& [now, stored, values] = found;
    const bool same = stored == now;
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.replay/1"},
                                 {"cell", cell},
                                 {"replicate", replicate},
                                 {"failure", now},
                                 {"stored_failure", stored.empty() ? Json() : Json(stored)}}));
    else
        print_text(fmt::format("it fails: {}\n{}\n", one_line(now),
                               same             ? "as it did in the store"
                               : stored.empty() ? "no failure of it is stored"
                                                : "the stored reason differs: " + one_line(stored)));
    return static_cast<int>(same ? ExitCode::fine : ExitCode::check_failed);
}

/// Prints the values of the replicate beside those of the store.
int report_comparison(const Arguments& arguments, const validation::Experiment& experiment, const std::string& cell,
                      std::size_t replicate, const validation::Replay& found) {
    reports::TextTable table({"method", "metric", "k", "now", "stored"}, 2);
    Json rows = Json::array();
    for (const auto& [now, stored, kept, same] : found.values) {
        const std::string& method = experiment.methods[now.method].name;
        const std::string& metric = validation::metrics()[now.metric].name;
        rows.push(Json::object({{"method", method},
                                {"metric", metric},
                                {"k", now.k},
                                {"value", now.value},
                                {"stored", stored},
                                {"same", kept ? Json(same) : Json()}}));
        table.add({method, metric, fmt::format("{}", now.k), fmt::format("{:.17g}", now.value),
                   !kept  ? "not kept"
                   : same ? "the same"
                          : fmt::format("{:.17g}", stored)});
    }
    const std::size_t compared = found.compared();
    const std::size_t differing = found.differing();
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.replay/1"},
                                 {"cell", cell},
                                 {"replicate", replicate},
                                 {"compared", compared},
                                 {"differing", differing},
                                 {"values", std::move(rows)}}));
    else
        print_text(table.text() + (compared > 0 ? fmt::format("{} of {} stored values differ\n", differing, compared)
                                                : "the store keeps no value of this replicate: nothing to compare\n"));
    return static_cast<int>(differing > 0 ? ExitCode::check_failed : ExitCode::fine);
}

int replay(const Arguments& arguments) {
    const std::string& path = arguments.positionals.front();
    for (const char* option : {"--cell", "--rep"})
        if (!arguments.has(option))
            throw usage_error(
                "replay: {} is missing (it says what is computed again): add for example --cell 1 --rep 0", option);
    validation::Database store = validation::open_store(path);
    validation::Study study;
    if (validation::holds_claims(store))
        study.experiment = validation::stored_claims(store, claims_of(arguments, store));
    else
        study = validation::stored_study(store);
    const std::size_t cell = validation::find_cell(store, arguments.text("--cell"));
    const std::size_t replicate = arguments.count("--rep");
    validation::Statement of_cell(store, "SELECT reps_target, label FROM cell WHERE cell_id = ?");
    of_cell.bind(1, cell + 1);
    (void)of_cell.step();
    if (replicate >= static_cast<std::size_t>(of_cell.integer(0)))
        throw usage_error(
            "--rep {} is not in the study (cell {} has at most {} replicates, from 0): give a smaller one", replicate,
            cell + 1, of_cell.integer(0));
    if (arguments.has("--block")) {
        if (!study.experiment.block)
            throw usage_error(
                "--block: {}",
                validation::holds_claims(store)
                    ? "a trial of a claim is a number, and may be of several blocks: leave it out"
                    : fmt::format("a dump study reads its blocks from {}: use spiked kv inspect to find them",
                                  study.experiment.inputs.empty() ? "files" : study.experiment.inputs.front().path));
        sim::write_npy(arguments.text("--block"), study.experiment.block(cell, replicate));
    }
    move_to_device(arguments, study.experiment, {.store_path = path, .threads = 1}, arguments.text("--device"));
    const std::string backend = validation::stored_backend(path);
    const double allowed = backend == study.experiment.backend ? 0.0 : validation::tolerance_between_backends;
    if (allowed > 0.0)
        print_note(arguments, fmt::format("the store was computed on {}, this on {}: values within {} are the same",
                                          backend, study.experiment.backend, allowed));
    const std::string label = of_cell.text(1);
    const validation::Replay found = validation::replay(store, study.experiment, cell, replicate, allowed);
    return found.failure.empty() ? report_comparison(arguments, study.experiment, label, replicate, found)
                                 : report_failure(arguments, label, replicate, found);
}

}  // namespace

Command merge_command() {
    return {"merge",
            "join stores of one study: shards, or runs on several machines",
            {"spiked merge part-*.spiked -o whole.spiked"},
            file_with({".spiked"}, "STORE.spiked"),
            1,
            10000,
            {{"-o,--output", file_with({".spiked"}, "STORE.spiked"), "the store to make"}},
            merge};
}

Command compare_command() {
    return {"compare",
            "compare two stores: which means differ beyond chance, and claim by claim where they hold claims",
            {"spiked compare before.spiked after.spiked", "spiked compare a.spiked b.spiked --all",
             "spiked compare a.spiked b.spiked --false-alarm 1e-6"},
            file_with({".spiked"}, "STORE.spiked"),
            2,
            2,
            {{"--all", {}, "show every mean, not only those that differ"},
             false_alarm_option("compare means, and judge checks and claims of both stores")},
            compare,
            {"A.spiked", "B.spiked"}};
}

Command replay_command() {
    return {"replay",
            "compute one replicate of a store again, and compare it with what is kept",
            {"spiked replay results/demo.spiked --cell 1 --rep 7",
             "spiked replay results/demo.spiked --cell 3 --rep 0 --block block.npy"},
            file_with({".spiked"}, "STORE.spiked"),
            1,
            1,
            {{"--cell", any_text("C"), "number, label or hash of the cell"},
             {"--rep", whole("R"), "replicate, from 0"},
             {"--block", file_with({".npy"}), "also write its block"},
             device_option("device to compute it on; when not given, that of the store")},
            replay};
}

}  // namespace spiked::app
