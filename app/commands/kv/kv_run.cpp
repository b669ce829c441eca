#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>

#include "app/cli/command.hpp"
#include "app/cli/stop_requests.hpp"
#include "app/options/dump_options.hpp"
#include "app/options/method_options.hpp"
#include "app/options/model_options.hpp"
#include "app/studies/study_run.hpp"
#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "reports/figures/figures.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/tables/kv_report.hpp"
#include "reports/tables/metric_words.hpp"
#include "validation/kv/kv_measurement.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/kv/spectrum_references.hpp"
#include "validation/metrics/metric_table.hpp"
#include "validation/study/command_studies.hpp"

namespace spiked::app {
namespace {

/// What differs between `kv run` and `kv frontier`.
struct Measuring {
    std::vector<std::string> of_rotated;  ///< additional default methods if every dump says how its keys were rotated
    bool needs_attention = false;
};

/// The paths of the store and report. Throws usage_error if one of them is an input.
StudyRun study_of(const Arguments& arguments, const std::vector<std::string>& inputs, const std::string& label) {
    StudyRun study{.store_path = ":memory:", .threads = arguments.count("--threads"), .label = label};
    if (arguments.has("--output"))
        study.store_path = arguments.text("--output");
    else if (arguments.has("--report")) {
        study.store_path = std::filesystem::path(arguments.text("--report")).replace_extension(".spiked").string();
        reject_derived_name(study.store_path);
    }
    study.report_path = arguments.text("--report");
    for (const auto& input : inputs) {
        keep_apart(study.store_path, input);
        keep_apart(study.report_path, input);
    }
    return study;
}

validation::CommandOrigin origin_of(const Arguments& arguments) { return {command_line(), arguments.has("--seed")}; }

/// Prints the results in a store; the notes are already on standard error.
using Print = std::function<void(validation::Database& store, const std::vector<std::string>& notes)>;

/// Measures the dumps into a store and calls `print` with it.
int measured(const Arguments& arguments, const Measuring& measuring, const Print& print) {
    validation::KvPlan plan = read_dump_plan(arguments);
    plan.quantizer = read_quantizer_options(arguments);
    plan.quantizer.residual = arguments.count("--residual");
    plan.calibration = arguments.list("--calibrate");
    if (arguments.has("--attention")) plan.attention = validation::attention_mode(arguments.text("--attention"));

    std::vector<std::string> names = arguments.list("--method");
    if (!arguments.has("--method")) names = default_methods(plan, std::move(names), measuring.of_rotated);
    std::vector<validation::DumpMethod> methods;
    std::vector<UsedOptions> used;
    for (const auto& name : names) {
        methods.push_back(validation::dump_method(name));
        used.push_back(std::visit([](const auto& method) { return used_by(method); }, methods.back()));
    }
    reject_unused_options(arguments, used);
    const validation::Experiment experiment =
        dump_experiment(plan, methods, arguments.numbers("--bits"), origin_of(arguments));
    if (measuring.needs_attention && !measures_attention(experiment))
        throw input_error(
            "attention is not measured (the dumps lack queries, keys, values or the word causal or bidirectional): "
            "give --attention, or leave --metric out");
    // Heads of different models are different clusters, so that the errors are right, but a mean over the blocks of two
    // models describes neither.
    if (const auto models = models_of(plan); models.size() > 1)
        print_note(arguments, fmt::format("the table mixes dumps of {}: run them one by one for numbers of each",
                                          fmt::join(models, " and ")));
    return run_study(arguments, experiment, study_of(arguments, plan.dumps, "blocks"),
                     [&](validation::Database& store) { print(store, experiment.notes); });
}

int run_kv_run(const Arguments& arguments) {
    const Measuring measuring{{"unrope+eoptshrink+tq-mse"}, false};
    return measured(arguments, measuring, [&](validation::Database& store, const std::vector<std::string>& notes) {
        const validation::KvTable table = kv_table(store);
        const auto equal = equal_bits(store);
        if (arguments.json())
            print_json(reports::kv_json(table, equal).set("notes", notes));
        else
            print_text(reports::kv_text(table, equal));
    });
}

/// Measures the loss of a model into a store and calls `print` with it.
int measured_model(const Arguments& arguments, const std::string& metric, const Print& print) {
    const auto shown = [&](const validation::Experiment& experiment) {
        return [&](validation::Database& store) { print(store, experiment.notes); };
    };
    (void)read_quantizer_options(arguments);  // errors of options come before those of files
    if (arguments.has("--tokens") && metric != "added_nats")
        throw usage_error("--metric {} asks for needles and --tokens for added nats: leave one of them out", metric);
    if (metric == "added_nats") {
        if (!arguments.has("--tokens"))
            throw usage_error("--metric added_nats needs --tokens: name a file of token ids, a document a row");
        const auto plan = read_perplexity_plan(arguments);
        const auto experiment = perplexity_experiment(plan, origin_of(arguments));
        return run_study(arguments, experiment, study_of(arguments, {plan.tokens}, "documents"), shown(experiment));
    }
    validation::RetrievalPlan plan;
    read_needles(arguments, plan);
    const auto experiment = retrieval_experiment(plan, origin_of(arguments));
    return run_study(arguments, experiment, study_of(arguments, {plan.filler}, "prompts"), shown(experiment));
}

std::vector<std::string> metrics_of_models() {
    std::vector<std::string> names;
    for (const auto& metric : validation::metrics())
        if (metric.text.group == validation::MetricGroup::of_models) names.push_back(metric.name);
    return names;
}

/// The metric to show, which must belong to the given source: a model or dumps.
std::string frontier_metric(const Arguments& arguments) {
    const bool model = arguments.has("--model");
    if (!model && arguments.positionals.empty())
        throw usage_error("neither dumps nor --model: name dumps, or the folder of a model");
    if (model && !arguments.has("--metric")) return arguments.has("--tokens") ? "added_nats" : "retrieval";
    const std::string metric = arguments.text("--metric");
    const auto of_models = metrics_of_models();
    if (model != (std::find(of_models.begin(), of_models.end(), metric) != of_models.end()))
        throw usage_error("--metric {} is of {}: choose another, or leave --metric out", metric,
                          model ? "dumps" : "a model (--model)");
    return metric;
}

/// The references of the dumps that a table was measured on, at the multiples of half a bit around its rows. None for a
/// model.
std::vector<validation::SpectrumReference> references_beside(const Arguments& arguments,
                                                             const validation::KvTable& table) {
    if (arguments.has("--model")) return {};
    constexpr double most = 8.0;
    double low = most;
    double high = 0.0;
    for (const auto& row : table.rows) {
        low = std::fmin(low, row.of("bits_per_entry").mean);
        high = std::fmax(high, row.of("bits_per_entry").mean);
    }
    std::vector<double> bits;
    for (double b = std::max(0.5, std::floor(2.0 * low) / 2.0); b <= std::min(most, std::ceil(2.0 * high) / 2.0);
         b += 0.5)
        bits.push_back(b);
    return spectrum_references(read_dump_plan(arguments), bits, arguments.count("--threads"));
}

int frontier(const Arguments& arguments) {
    const auto& metrics = reports::frontier_metrics();
    const std::string metric = frontier_metric(arguments);
    // A range of tokens is of dumps, a file of them of a model.
    if (!arguments.has("--model") && arguments.text("--tokens").ends_with(".npy"))
        throw usage_error("--tokens with a file is of a model (--model) and dumps are given: leave it out");
    if (metric != metrics.front() && arguments.text("--attention") == "none")
        throw usage_error("--metric {} is not measured with --attention none: leave one of them out", metric);
    if (metric == "attention_logits" && arguments.text("--side") == "value")
        throw usage_error("--metric {} is of keys and --side value leaves them out: leave one of them out", metric);
    std::optional<double> at;
    if (arguments.has("--at")) at = arguments.number("--at");
    for (const auto& dump : arguments.positionals) keep_apart(arguments.text("--plot"), dump);
    const Measuring measuring{{"unrope+eoptshrink+tq-mse", "unrope+svd:rd+tcq"}, metric != metrics.front()};
    const auto print = [&](validation::Database& store, const std::vector<std::string>& notes) {
        const validation::KvTable table = kv_table(store);
        const auto methods = at ? methods_at(store, *at, metric) : std::vector<validation::EqualBits>();
        const auto references = references_beside(arguments, table);
        if (at && methods.empty())
            throw usage_error("no method is measured around {} bits: give --bits on both sides of it", *at);
        if (arguments.has("--plot"))
            reports::write_picture(
                reports::figures_of_kind(
                    "frontier", store,
                    Json::object({{"y", metric}, {"references", reports::references_json(references)}}))
                    .front(),
                arguments.text("--plot"));
        if (arguments.json())
            print_json(reports::frontier_json(table, metric, methods, references).set("notes", notes));
        else
            print_text(reports::frontier_text(table, metric, methods, references));
    };
    if (arguments.has("--model")) return measured_model(arguments, metric, print);
    if (!arguments.has("--method"))
        print_note(arguments,
                   fmt::format("most of the time is that of svd:rd+tcq and unrope+svd:rd+tcq, the best ones: for a "
                               "first look {}name methods with --method",
                               arguments.has("--layers") ? "" : "add --layers 0, or "));
    return measured(arguments, measuring, print);
}

/// The options of `kv frontier --model`.
std::vector<OptionSpec> options_of_a_model() {
    OptionSpec model = model_beside_dumps(dump_options());
    for (const char* key : {"--attention", "--calibrate", "--residual"}) model.excludes.keys.emplace_back(key);
    OptionSpec documents = documents_option();
    documents.needs = {{"--model", "--tokens"}, "it counts the texts of a model"};
    OptionSpec budget = budget_option();
    budget.needs = {{"--model"}, "it is of a model"};
    std::vector<OptionSpec> needles = needle_options();
    std::erase_if(needles, [](const OptionSpec& option) { return option.key == "--prompts-file"; });
    for (OptionSpec& option : needles) {
        option.needs = {{"--model"}, "prompts are for a model"};
        option.excludes = {{"--tokens"}, "either needles are asked for or added nats"};
    }
    return joined({in_group("With a model instead of dumps", {model, documents, budget}), needles});
}

/// The options of both commands that follow --method.
std::vector<OptionSpec> measuring_options(const std::string& bits) {
    const std::vector<OptionSpec> options = {
        several_bits_option(bits),
        {"-o,--output", file_with({".spiked"}, "STORE.spiked"),
         "keep every number in a store; the same command again resumes"},
        {"--report", file_with({".html"}), "write the report; the store is written beside it, unless -o names it"},
        threads_option(),
    };
    std::vector<OptionSpec> details = {
        {"--calibrate", several(dump_value("DUMP")),
         fmt::format("other sequences of the same model, from which {} take their bases",
                     fmt::join(estimators::calibrated_caches(), ", ")),
         "", true},
        residual_option(),
        {"--attention", one_of<validation::AttentionMode>(),
         "keys that a query attends to, for files that do not say it (without it, attention is not measured); none: do "
         "not measure attention"},
    };
    return joined({options, in_group(how_it_is_measured, std::move(details)), dump_options(), quantizer_options()});
}

}  // namespace

Command kv_run_command() {
    std::vector<OptionSpec> options = {{"--method", names_from({"quantizers", "caches"}, several(any_text("NAME"))),
                                        "methods to compare; spiked list shows all. By default "
                                        "unrope+eoptshrink+tq-mse is added if the dumps allow it",
                                        "tq-mse,svd:1+tq-mse,eoptshrink+tq-mse", true}};
    options = joined({options, measuring_options("2,3,4")});
    return {"kv run",
            "compress every block of KV dumps and print the paper's table with error bars",
            {"spiked kv run dump.safetensors",
             "spiked kv run dump.safetensors -o results/dump.spiked --report results/dump.html",
             "spiked kv run a.safetensors b.safetensors --method tq-mse --bits 2,4 --json"},
            dump_value("DUMP"),
            1,
            1 << 20,
            options,
            run_kv_run};
}

Command kv_frontier_command() {
    const auto of_models = metrics_of_models();
    std::vector<OptionSpec> options = {
        {"--method", names_from({"quantizers", "caches"}, several(any_text("NAME"))),
         "methods to compare. By default unrope+eoptshrink+tq-mse and unrope+svd:rd+tcq are added if the dumps allow "
         "it; for a model the defaults of kv perplexity",
         "tq-mse,tq-prod,eden-mmse,qjl,kivi,rabitq,polarquant,kvquant,rht-uniform,gear,ecsq,svd:1+tq-mse,"
         "eoptshrink+tq-mse,svd:rd+tcq,xkv",
         true},
        {"--metric", one_of(reports::frontier_metrics()),
         fmt::format("the error for the convex hull, --at and --plot; the table shows every measured one. With "
                     "--model: {} or {}",
                     fmt::join(of_models.begin(), of_models.end() - 1, ", "), of_models.back()),
         "relative_l2"},
        plot_option("the error against stored bits with the convex hull as a picture"),
        {"--at", number("BITS", {.above = 0.0, .most = 64.0}),
         "also list every method's error, interpolated to this many stored bits per entry, the smallest first"}};
    std::vector<OptionSpec> more = measuring_options("1,2,3,4");
    for (OptionSpec& option : more)
        if (option.key == "--tokens") {
            option.value = any_text("FIRST:LAST|FILE.npy");
            option.help +=
                "; with --model: token ids, one document per row, on which added nats are measured, and without this "
                "option, retrieval of needles is";
        }
    options = joined({options, more, options_of_a_model()});
    return {"kv frontier",
            "compare errors of methods as a function of stored bits, and mark the methods on the lower convex hull",
            {"spiked kv frontier dump.safetensors --at 2.5",
             "spiked kv frontier dump.safetensors --layers 0 --at 2.5 --plot frontier.svg",
             "spiked kv frontier dump.safetensors --calibrate other.safetensors --plot frontier.svg",
             "spiked kv frontier dump.safetensors --at 3 --metric attention_output -o dump.spiked",
             "spiked kv frontier dump.safetensors --method tq-mse,tcq,unrope+eoptshrink+tcq --bits 2,3 --json",
             "spiked kv frontier --model model/ --tokens pages.npy --method tq-mse,eoptshrink+tq-mse --plot nats.svg",
             "spiked kv frontier --model model/ --needles 240 --prompts 16 --method tq-mse,snapkv --budget 0.1,0.2"},
            dump_value("DUMP"),
            0,
            1 << 20,
            options,
            frontier};
}

}  // namespace spiked::app
