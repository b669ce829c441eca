#include <fmt/format.h>

#include <filesystem>

#include "app/command.hpp"
#include "app/dump_options.hpp"
#include "app/method_options.hpp"
#include "app/study_run.hpp"
#include "reports/kv_report.hpp"
#include "theory/base/error.hpp"
#include "validation/kv_measurement.hpp"

namespace spiked::app {
namespace {

int run(const Arguments& arguments) {
    validation::KvPlan plan = read_dump_plan(arguments);
    plan.quantizer = read_quantizer_options(arguments);

    validation::Experiment experiment;
    experiment.name = "kv-run";
    experiment.title = plan.dumps.size() == 1 ? std::filesystem::path(plan.dumps.front()).filename().string()
                                              : fmt::format("{} dumps", plan.dumps.size());
    experiment.config_source = command_line();
    experiment.science = Json::object({{"spiked", 1}, {"kind", "kv_dump"}});
    Json names = Json::array();
    for (const auto& method : arguments.list("--method")) names.push(method);
    for (const auto bits : read_bits(arguments)) names.push(static_cast<std::int64_t>(bits));
    experiment.science.set("methods", std::move(names));
    experiment.seed = plan.quantizer.seed;
    experiment.seed_source = arguments.has("--seed") ? "cli" : "config";
    experiment.raw_per_cell = 0;
    make_dump_experiment(experiment, plan, validation::named_codecs(arguments.list("--method"), read_bits(arguments)));

    const bool keeps = arguments.has("--output") || arguments.has("--report");
    StudyRun study{.store_path = ":memory:", .threads = arguments.count("--threads"), .label = "blocks"};
    if (arguments.has("--output"))
        study.store_path = arguments.text("--output");
    else if (keeps)
        study.store_path = std::filesystem::path(arguments.text("--report")).replace_extension(".spiked").string();
    study.report_path = arguments.text("--report");
    for (const auto& dump : plan.dumps) {
        keep_apart(study.store_path, dump);
        keep_apart(study.report_path, dump);
    }
    return run_study(arguments, experiment, study, [&](validation::Database& store) {
        const validation::KvTable table = kv_table(store);
        if (arguments.json())
            print_json(reports::kv_json(table));
        else
            print_text(reports::kv_text(table));
    });
}

}  // namespace

Command kv_run_command() {
    std::vector<Option> options = {
        {"--method", "NAME[,NAME...]", "what to compare; spiked list shows all",
         "tq-mse,svd:1+tq-mse,eoptshrink+tq-mse", true},
        {"--bits", "B[,B...]", "index bits an entry", "2,3,4", true},
        {"-o,--output", "STORE.spiked", "keep every number in a store; the same command again resumes", "", false},
        {"--report", "FILE.html", "write the report; its store stands beside it unless -o says where", "", false},
        {"--threads", "N", "0: all of the machine; never changes a number", "0", false},
    };
    options.insert(options.begin() + 2, dump_options().begin(), dump_options().end());
    options.insert(options.end(), quantizer_options().begin(), quantizer_options().end());
    return {"kv run",
            "compress every block of KV dumps and print the paper's table with error bars",
            {"spiked kv run dump.safetensors",
             "spiked kv run a.safetensors b.safetensors --method tq-mse --bits 2,4 --json",
             "spiked kv run dump.safetensors -o results/dump.spiked --report results/dump.html"},
            "DUMP...",
            1,
            1 << 20,
            options,
            run};
}

}  // namespace spiked::app
