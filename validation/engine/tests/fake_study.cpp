#include "validation/engine/tests/fake_study.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

#include "sim/random/normal.hpp"

namespace spiked::validation {

Experiment FakeStudy::experiment() const {
    Experiment experiment;
    experiment.name = experiment.title = "fake";
    experiment.kind = "spiked";
    experiment.config_source = "no file";
    experiment.seed = stream::StudySeed::parse(seed);
    experiment.false_alarm = 1e-3;
    experiment.batch = batch;
    experiment.until = until;
    experiment.raw_per_cell = raw;
    experiment.failure_budget = failure_budget;
    experiment.methods = {{"sample", "sample", "sample", std::nullopt, Json::object()},
                          {"first", "estimator", "first", std::nullopt, Json::object()},
                          {"second B=2", "codec", "second", 2U, Json::object()}};
    experiment.claims = {{"overlap.left", "nowhere", "the mean is that of its cell", "a mean 10 larger"}};
    experiment.checks = {{.name = "mean", .claim = "overlap.left", .where = {}, .margin_absolute = margin}};
    Json list = Json::array();
    for (const auto& at : cells) {
        ExperimentCell cell;
        cell.label = "cell " + at.name;
        cell.rows = cell.columns = 128;
        cell.params =
            Json::object({{"name", at.name}, {"mean", at.mean}, {"spread", at.deviation}, {"failing", at.failing}});
        cell.replicates = most;
        cell.least_replicates = least;
        cell.factors = {{"mean", at.mean, fmt::format("{}", at.mean)}};
        cell.limits = {{"overlap.left", 1, at.mean}};
        cell.predictions = {{"overlap.left", "overlap.left", 0, 1, at.mean, at.mean + 10.0}};
        list.push(cell.params);
        experiment.cells.push_back(std::move(cell));
    }
    Json rules = Json::array();
    for (const auto& rule : until)
        rules.push(Json::object({{"metric", rule.metric}, {"relative", rule.relative}, {"absolute", rule.absolute}}));
    experiment.science = Json::object({{"cells", std::move(list)},
                                       {"least", least},
                                       {"most", most},
                                       {"batch", batch},
                                       {"until", std::move(rules)},
                                       {"raw", static_cast<std::int64_t>(raw)},
                                       {"margin", margin}});
    std::vector<std::string> hashes;
    for (const auto& cell : experiment.cells) hashes.push_back(cell.hash());
    experiment.worker = [cells = cells, hashes, of = experiment.seed](std::size_t c,
                                                                      ReplicateRange) -> Experiment::Worker {
        return [at = cells[c], hash = hashes[c], of](std::uint64_t r) -> std::vector<Observation> {
            std::array<double, 5> z{};
            stream::fill_normal(stream::Stream(of, hash, stream::Role::noise, r), z);
            if (0.5 * std::erfc(z[4] / std::sqrt(2.0)) < at.failing) throw input_error("planted failure of {}", r);
            const double x = at.mean + at.deviation * z[0];
            return {{0, metric_index("overlap.left"), 1, x},
                    {0, metric_index("overlap.left"), 2, at.mean + 0.1 * at.deviation * z[1]},
                    {1, metric_index("relative_error"), 0, x + 0.1 * z[2]},
                    {1, metric_index("strength"), 1, z[3] < -0.43 ? std::nan("") : x * x},
                    {2, metric_index("relative_l2"), 0, std::exp(z[2])},
                    {2, metric_index("bits.indices"), 0, 2.0},
                    {2, metric_index("bits.norms"), 0, 0.125 + 0.01 * z[3]}};
        };
    };
    experiment.arrays = [](std::size_t c) -> std::vector<NamedArray> {
        return {{1, "block", arma::mat(2, 3, arma::fill::value(static_cast<double>(c)))}};
    };
    return experiment;
}

std::string scratch_path(const std::string& name) {
    // Use a folder in memory if there is one, because these tests commit thousands of batches.
    static const struct Folder {
        Folder() {
            const std::string root = std::filesystem::is_directory("/dev/shm") ? "/dev/shm/" : testing::TempDir();
            path = fmt::format("{}spiked-test-{}", root, getpid());
            std::filesystem::create_directories(path);
        }
        ~Folder() { std::filesystem::remove_all(path); }
        std::string path;
    } folder;
    const std::string path = fmt::format("{}/{}.spiked", folder.path, name);
    for (const char* suffix : {"", "-journal"}) std::remove((path + suffix).c_str());
    return path;
}

RunOutcome run_into(const Experiment& experiment, const std::string& path, const RunOptions& options) {
    Store store(path, experiment, "test", 1, Json::object());
    const RunOutcome outcome = run_experiment(experiment, store, options);
    const std::map<RunOutcome, std::string> status = {{RunOutcome::complete, "complete"},
                                                      {RunOutcome::part_complete, "shard " + options.shard.text()},
                                                      {RunOutcome::stopped, "stopped"},
                                                      {RunOutcome::too_many_failures, "failed"}};
    store.finish(status.at(outcome), 0, "");
    return outcome;
}

std::map<std::string, std::string> judged_study(const Experiment& experiment, const std::string& path) {
    run_into(experiment, path);
    Database store(path, Database::Mode::read);
    Statement rows(store,
                   "SELECT c.label, v.metric, v.k, v.verdict, v.control_verdict, v.estimate, v.expected, v.margin, "
                   "v.detectable FROM verdict v JOIN cell c USING(cell_id) ORDER BY verdict_id");
    std::map<std::string, std::string> found;
    while (rows.step()) {
        const std::string what = fmt::format("{} {} {}", rows.text(0), rows.text(1), rows.integer(2));
        found[what] = rows.text(3);
        std::cout << fmt::format("{}: {:.4f}, expected {:.4f} +- {:.4f}: {}; a deviation of {:.4f} would be detected\n",
                                 what, rows.real(5), rows.real(6), rows.real(7), rows.text(3), rows.real(8));
        EXPECT_EQ(rows.text(4), "fail") << "the built-in control of " << what;
    }
    return found;
}

std::string science_of(Database& store) {
    std::string text;
    for (const char* query :
         {"SELECT name, kind, config_resolved, science_hash, seed, false_alarm, batch_reps FROM study",
          "SELECT * FROM cell ORDER BY 1", "SELECT * FROM factor ORDER BY 1, 2", "SELECT * FROM method ORDER BY 1",
          "SELECT * FROM question ORDER BY 1", "SELECT * FROM question_cell ORDER BY 1, 2",
          "SELECT * FROM stop_rule ORDER BY 1", "SELECT * FROM theory ORDER BY 1, 2, 3",
          "SELECT cell, method, metric, k, n, failed, mean, sd, mcse, lo, hi FROM v_summary ORDER BY cell_id, "
          "method_id, metric_id, k",
          "SELECT * FROM moment ORDER BY 1, 3, 4, 5, 2", "SELECT * FROM value ORDER BY 1, 3, 4, 5, 2",
          "SELECT cell_id, batch, rep_first, reps, failed, digest FROM batch ORDER BY 1, 2",
          "SELECT * FROM failure ORDER BY cell_id, rep",
          "SELECT cell_id, rep, method_id, name, hex(npy) FROM array ORDER BY 1, 2, 3, 4",
          "SELECT * FROM v_bits ORDER BY 1, 2", "SELECT * FROM verdict ORDER BY 1"}) {
        Statement row(store, query);
        text += std::string(query) + "\n";
        while (row.step()) {
            for (int c = 0; c < row.columns(); ++c)
                text += (row.is_null(c) ? "-" : row.is_text(c) ? row.text(c) : fmt::format("{:a}", row.real(c))) + ",";
            text += "\n";
        }
    }
    return text;
}

std::string science_of(const std::string& path) {
    Database store = open_store(path);
    return science_of(store);
}

StoreComparison compared(const std::string& path_a, const std::string& path_b) {
    Database a = open_store(path_a);
    Database b = open_store(path_b);
    return compare_stores(a, b);
}

void edit(const std::string& path, const std::string& sql) { Database(path, Database::Mode::write).execute(sql); }

std::string message_of(const std::function<void()>& work, ErrorKind kind) {
    try {
        work();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

}  // namespace spiked::validation
