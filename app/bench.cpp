#include <fmt/format.h>

#include "app/command.hpp"
#include "reports/text_table.hpp"
#include "theory/base/stopwatch.hpp"
#include "theory/bench/theory_bench.hpp"

namespace spiked::app {
namespace {

int print(const Arguments& arguments, const std::vector<Timing>& timings) {
    if (arguments.json()) {
        Json rows = Json::array();
        for (const auto& timing : timings)
            rows.push(Json::object({{"what", timing.what}, {"median", timing.median}, {"p10", timing.p10}}));
        print_json(Json::object({{"schema", "spiked.bench/1"}, {"unit", "us"}, {"rows", std::move(rows)}}));
        return 0;
    }
    reports::TextTable table({"what", "median", "p10"});
    for (const auto& timing : timings)
        table.add({timing.what, fmt::format("{:.1f}", timing.median), fmt::format("{:.1f}", timing.p10)});
    print_text(table.text() + "microseconds; p10 is what a quiet machine gives: compare rows of one run, in ratios.\n");
    return 0;
}

int run_theory(const Arguments& arguments) {
    return print(arguments, time_interleaved(theory::benchmark_jobs(), arguments.number("--seconds")));
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

}  // namespace spiked::app
