#include <fmt/format.h>

#include "app/cli/command.hpp"
#include "app/cli/progress.hpp"
#include "app/options/dump_options.hpp"
#include "reports/tables/adequacy_report.hpp"
#include "validation/kv/adequacy.hpp"

namespace spiked::app {
namespace {

int run_kv_adequacy(const Arguments& arguments) {
    validation::AdequacyPlan plan;
    plan.blocks = read_dump_plan(arguments);
    plan.seed = stream::StudySeed::parse(arguments.text("--seed"));
    plan.level = arguments.number("--level");
    plan.threads = arguments.count("--threads");
    validation::Adequacy found;
    {
        ProgressDisplay display(arguments, "blocks");
        plan.progress = [&](std::uint64_t done, std::uint64_t total) { display.show(done, total); };
        found = validation::measure_adequacy(plan);
    }
    for (const auto& note : found.notes) print_note(arguments, note);
    if (arguments.json())
        print_json(reports::adequacy_json(found));
    else
        print_text(reports::adequacy_text(found, arguments.verbose()));
    return 0;
}

}  // namespace

Command kv_adequacy_command() {
    std::vector<OptionSpec> options = dump_options();
    const std::vector<OptionSpec> own = {
        {"--level", number("P", validation::adequacy_levels), "significance level of each test",
         fmt::format("{}", validation::AdequacyPlan{}.level)},
        {"--seed", any_text("HEX"), "seed of the simulated null laws", "0x5eed"},
        threads_option(),
    };
    options = joined({options, own});
    return {
        "kv adequacy",
        "test whether the spiked model describes the blocks of KV dumps: the fraction of blocks that each test rejects",
        {"spiked kv adequacy dump.safetensors", "spiked kv adequacy a.safetensors b.safetensors --side value --json",
         "spiked kv adequacy dump.safetensors --layers 0,1 --block 64 --level 0.05 -v"},
        dump_value("DUMP"),
        1,
        1 << 20,
        options,
        run_kv_adequacy};
}

}  // namespace spiked::app
