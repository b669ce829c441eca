#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/cli/command.hpp"
#include "app/cli/exit_code.hpp"
#include "app/cli/stop_requests.hpp"
#include "app/commands/study_run.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/io/npy.hpp"
#include "validation/engine/compare.hpp"
#include "validation/engine/engine.hpp"
#include "validation/engine/judge.hpp"
#include "validation/engine/merge.hpp"
#include "validation/engine/store.hpp"
#include "validation/study/study.hpp"

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
    const auto verdicts = validation::count_verdicts(store);
    const std::int64_t replicates = store.integer("SELECT coalesce(sum(reps), 0) FROM batch");
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.merge/1"},
                                 {"store", output},
                                 {"status", status},
                                 {"replicates", replicates},
                                 {"checks", reports::counts_json(verdicts)}}));
    else
        print_text(fmt::format("{} replicates, {}; checks: {}\ndata     {}\n", replicates, one_line(status),
                               reports::counts_text(verdicts), output));
    if (status == "failed") return static_cast<int>(ExitCode::too_many_failures);
    return static_cast<int>(verdicts.failed > 0 && status == "complete" ? ExitCode::check_failed : ExitCode::fine);
}

int compare(const Arguments& arguments) {
    const auto found = validation::compare_stores(arguments.positionals[0], arguments.positionals[1]);
    if (arguments.json()) {
        print_json(found.json());
        return 0;
    }
    reports::TextTable table({"cell", "method", "metric", "k", "a", "b", "b - a", "over", "p"}, 3);
    std::size_t shown = 0;
    for (const auto& row : found.rows) {
        if (!row.beyond && !arguments.has("--all")) continue;
        ++shown;
        table.add({row.cell, row.method, row.metric, fmt::format("{}", row.k),
                   reports::with_error(row.a.mean, row.a.standard_error),
                   reports::with_error(row.b.mean, row.b.standard_error),
                   reports::with_error(row.difference, row.standard_error),
                   row.pairs > 0     ? fmt::format("{} pairs", row.pairs)
                   : row.batches > 0 ? fmt::format("{} batches", row.batches)
                                     : "means",
                   reports::number(row.p, 2)});
    }
    std::string text = shown > 0 ? table.text() : "";
    text += fmt::format(
        "{} means in both stores, {} differ beyond chance (false-alarm rate {:g} for all of them together)\n",
        found.rows.size(), found.beyond, found.false_alarm);
    if (found.seed_a != found.seed_b)
        text += fmt::format("seeds differ ({}, {}): other draws, so that means are compared, not replicates\n",
                            one_line(found.seed_a), one_line(found.seed_b));
    if (found.cells_by_label > 0)
        text += fmt::format("{} cells have one label in both but differ in their model: other draws there, too\n",
                            found.cells_by_label);
    if (found.dependent_draws)
        text +=
            "blocks of one head or document depend on each other: within a cell errors and "
            "p-values are too small\n";
    if (found.batches_in_both > 0)
        text +=
            fmt::format("{} of {} batches with the same draws hold different numbers for a method of both stores{}\n",
                        found.batches_changed, found.batches_in_both,
                        found.first_changed.empty() ? "" : " (first: " + one_line(found.first_changed) + ")");
    for (const auto& [name, list] :
         {std::pair{arguments.positionals[0], &found.only_a}, std::pair{arguments.positionals[1], &found.only_b}})
        if (!list->empty())
            text += fmt::format("only in {}: {} means, first {}\n", name, list->size(), one_line(list->front()));
    print_text(text);
    return 0;
}

/// Cells are named by their number, their label, or the beginning of their hash.
std::size_t find_cell(validation::Database& store, const std::string& name) {
    validation::Statement query(store,
                                "SELECT cell_id FROM cell WHERE cast(cell_id AS TEXT) = ?1 OR label = ?1 OR "
                                "(length(?1) >= 8 AND substr(cell_hash, 1, length(?1)) = ?1) LIMIT 2");
    query.bind(1, name);
    if (!query.step())
        throw usage_error(
            "--cell \"{}\" is no cell of this store (numbers go from 1 to {}): see spiked show --table cells", name,
            store.integer("SELECT count(*) FROM cell"));
    const std::int64_t cell = query.integer(0);
    if (query.step())
        throw usage_error("--cell \"{}\" names more than one cell ({} and {}): give the number", name, cell,
                          query.integer(0));
    return static_cast<std::size_t>(cell - 1);
}

/// Reports why the replicate failed now, and whether it failed the same way in the store.
int report_failure(const Arguments& arguments, const std::string& cell, std::size_t replicate, const std::string& now,
                   const std::string& stored) {
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

/// The values of a replicate computed now, compared with the stored ones.
struct Comparison {
    reports::TextTable table{{"method", "metric", "k", "now", "stored"}, 2};
    Json rows = Json::array();
    std::size_t compared = 0;
    std::size_t differing = 0;
};

Comparison compare_with_stored(validation::Database& store, const validation::Experiment& experiment, std::size_t cell,
                               std::size_t replicate, const std::vector<validation::Observation>& observations,
                               double allowed) {
    validation::Statement stored(
        store, "SELECT v FROM value WHERE cell_id=? AND rep=? AND method_id=? AND metric_id=? AND k=?");
    Comparison found;
    for (const auto& o : observations) {
        stored.bind(1, cell + 1).bind(2, replicate).bind(3, o.method + 1).bind(4, o.metric + 1).bind(5, o.k);
        const bool kept = stored.step();
        const bool missing = kept && stored.is_null(0);
        const double before = kept && !missing ? stored.real(0) : std::numeric_limits<double>::quiet_NaN();
        stored.reset();
        const bool same =
            missing ? std::isnan(o.value)
                    : before == o.value || std::abs(before - o.value) <= allowed * std::max(1.0, std::abs(before));
        if (kept) {
            ++found.compared;
            found.differing += same ? 0 : 1;
        }
        const std::string& method = experiment.methods[o.method].name;
        const std::string& metric = validation::metrics()[o.metric].name;
        found.rows.push(Json::object({{"method", method},
                                      {"metric", metric},
                                      {"k", o.k},
                                      {"value", o.value},
                                      {"stored", before},
                                      {"same", kept ? Json(same) : Json()}}));
        found.table.add({method, metric, fmt::format("{}", o.k), fmt::format("{:.17g}", o.value),
                         !kept  ? "not kept"
                         : same ? "the same"
                                : fmt::format("{:.17g}", before)});
    }
    return found;
}

int report_comparison(const Arguments& arguments, const std::string& cell, std::size_t replicate, Comparison found) {
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.replay/1"},
                                 {"cell", cell},
                                 {"replicate", replicate},
                                 {"compared", found.compared},
                                 {"differing", found.differing},
                                 {"values", std::move(found.rows)}}));
    else
        print_text(found.table.text() +
                   (found.compared > 0 ? fmt::format("{} of {} stored values differ\n", found.differing, found.compared)
                                       : "the store keeps no value of this replicate: nothing to compare\n"));
    return static_cast<int>(found.differing > 0 ? ExitCode::check_failed : ExitCode::fine);
}

int replay(const Arguments& arguments) {
    const std::string& path = arguments.positionals.front();
    for (const char* option : {"--cell", "--rep"})
        if (!arguments.has(option))
            throw usage_error("replay: {} is missing: add for example --cell 1 --rep 0", option);
    validation::Database store = validation::open_store(path);
    validation::Study study = validation::stored_study(store);
    const std::size_t cell = find_cell(store, arguments.text("--cell"));
    const std::size_t replicate = arguments.count("--rep");
    if (replicate >= study.experiment.cells[cell].replicates)
        throw usage_error(
            "--rep {} is not in the study (cell {} has at most {} replicates, from 0): give a smaller one", replicate,
            cell + 1, study.experiment.cells[cell].replicates);
    if (arguments.has("--block")) {
        if (!study.experiment.block)
            throw usage_error("--block: a dump study reads its blocks from {}: use spiked kv inspect to find them",
                              study.experiment.inputs.empty() ? "files" : study.experiment.inputs.front().path);
        sim::write_npy(arguments.text("--block"), study.experiment.block(cell, replicate));
    }
    validation::Statement failed(store, "SELECT message FROM failure WHERE cell_id = ? AND rep = ?");
    failed.bind(1, cell + 1).bind(2, replicate);
    const std::string stored_failure = failed.step() ? failed.text(0) : "";
    move_to_device(arguments, study.experiment, {.store_path = path, .threads = 1}, arguments.text("--device"));
    const std::string backend = validation::stored_backend(path);
    // Different backends differ in the last digits.
    const double allowed = backend == study.experiment.backend ? 0.0 : 1e-3;
    if (allowed > 0.0)
        print_note(arguments, fmt::format("the store was computed on {}, this on {}: values within {} are the same",
                                          backend, study.experiment.backend, allowed));
    std::vector<validation::Observation> observations;
    const std::string& label = study.experiment.cells[cell].label;
    try {
        observations = study.experiment.worker(cell, {replicate, 1})(replicate);
    } catch (const Error& error) {
        if (!fails_the_replicate(study.experiment, error)) throw;
        return report_failure(arguments, label, replicate, error.what(), stored_failure);
    }
    return report_comparison(arguments, label, replicate,
                             compare_with_stored(store, study.experiment, cell, replicate, observations, allowed));
}

}  // namespace

Command merge_command() {
    return {"merge",
            "join stores of one study: shards, or runs on several machines",
            {"spiked merge part-*.spiked -o whole.spiked"},
            file_with({".spiked"}, "STORE.spiked..."),
            1,
            10000,
            {{"-o,--output", file_with({".spiked"}, "STORE.spiked"), "the store to make", "", false}},
            merge};
}

Command compare_command() {
    return {"compare",
            "compare two stores: which means differ beyond chance",
            {"spiked compare before.spiked after.spiked", "spiked compare a.spiked b.spiked --all"},
            file_with({".spiked"}, "A.spiked B.spiked"),
            2,
            2,
            {{"--all", {}, "show every mean, not only those that differ", "", false}},
            compare};
}

Command replay_command() {
    return {"replay",
            "compute one replicate of a store again, and compare it with what is kept",
            {"spiked replay results/demo.spiked --cell 1 --rep 7",
             "spiked replay results/demo.spiked --cell 3 --rep 0 --block block.npy"},
            file_with({".spiked"}, "STORE.spiked"),
            1,
            1,
            {{"--cell", any_text("C"), "number, label or hash of the cell", "", false},
             {"--rep", whole("R"), "replicate, from 0", "", false},
             {"--block", file_with({".npy"}), "also write its block", "", false},
             {"--device", any_text("cpu|cuda:0|emulated"), "device to compute it on; when not given, that of the store",
              "", false}},
            replay};
}

}  // namespace spiked::app
