#include <fmt/format.h>

#include <algorithm>

#include "app/command.hpp"
#include "reports/text_table.hpp"
#include "theory/base/stopwatch.hpp"
#include "theory/bench/theory_bench.hpp"
#include "validation/bench/trial_bench.hpp"

namespace spiked::app {
namespace {

Json document(const std::vector<Timing>& timings) {
    Json rows = Json::array();
    for (const auto& timing : timings)
        rows.push(Json::object({{"what", timing.what}, {"median", timing.median}, {"p10", timing.p10}}));
    return Json::object({{"schema", "spiked.bench/1"}, {"unit", "us"}, {"rows", std::move(rows)}});
}

std::string table(const std::vector<Timing>& timings) {
    reports::TextTable table({"what", "median", "p10"});
    for (const auto& timing : timings)
        table.add({timing.what, fmt::format("{:.1f}", timing.median), fmt::format("{:.1f}", timing.p10)});
    return table.text() + "microseconds; p10 is what a quiet machine gives: compare rows of one run, in ratios.\n";
}

int run_theory(const Arguments& arguments) {
    const auto timings = time_interleaved(theory::benchmark_jobs(), arguments.number("--seconds"));
    if (arguments.json())
        print_json(document(timings));
    else
        print_text(table(timings));
    return 0;
}

std::string ratios(const std::vector<Timing>& timings) {
    const auto p10 = [&](std::string_view what) {
        return std::find_if(timings.begin(), timings.end(), [&](const Timing& row) { return row.what == what; })->p10;
    };
    std::string text;
    for (const char* ours : {"spiked", "spiked-eigenbasis-hadamard"})
        text += fmt::format("{} is {:.1f} times as fast as numpy and {:.1f} times as fast as numpy-eigh (p10).\n", ours,
                            p10("numpy") / p10(ours), p10("numpy-eigh") / p10(ours));
    return text;
}

int run_trial(const Arguments& arguments) {
    const validation::TrialTimings timed = validation::time_trials(arguments.number("--seconds"));
    if (arguments.json()) {
        print_json(document(timed.rows).set("numpy", timed.numpy).set("outcomes", timed.outcomes));
        return 0;
    }
    const auto of_numpy = [&](const char* key) { return *timed.numpy.find(key)->string(); };
    print_text(
        table(timed.rows) + ratios(timed.rows) +
        fmt::format("A trial: 128 x 128 in float, signal of rank 4, 4 bits, one thread.\nNumPy {} of Python {} on {}\n",
                    of_numpy("numpy"), of_numpy("python"), of_numpy("blas")));
    return 0;
}

}  // namespace

Command bench_theory_command() {
    return {"bench theory",
            "times the theory: edge, threshold and strengths; density",
            {"spiked bench theory", "spiked bench theory --seconds 10 --json"},
            "",
            0,
            0,
            {{"--seconds", "S", "about how long to measure", "2", false}},
            run_theory};
}

Command bench_trial_command() {
    return {"bench trial",
            "times a whole simulated trial, here and in NumPy",
            {"spiked bench trial", "spiked bench trial --seconds 20 --json"},
            "",
            0,
            0,
            {{"--seconds", "S", "about how long to measure", "5", false}},
            run_trial};
}

}  // namespace spiked::app
