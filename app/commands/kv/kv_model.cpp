#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "app/cli/command.hpp"
#include "app/cli/progress.hpp"
#include "app/cli/stop_requests.hpp"
#include "app/options/dump_options.hpp"
#include "app/options/method_options.hpp"
#include "app/options/model_options.hpp"
#include "app/studies/study_run.hpp"
#include "core/runtime/error.hpp"
#include "reports/figures/answer_figure.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/needle_figure.hpp"
#include "reports/tables/kv_report.hpp"
#include "reports/tables/model_report.hpp"
#include "sim/llama/llama_dump.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/model/model_study.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"
#include "validation/study/command_studies.hpp"

// The commands `kv perplexity`, `kv retrieve` and `kv dump`, which run a model.

namespace spiked::app {
namespace {

OptionSpec store_option(const char* help, OtherOptions needs = {}) {
    return {
        .key = "-o,--output", .value = file_with({".spiked"}, "STORE.spiked"), .help = help, .needs = std::move(needs)};
}

/// The run of a study whose store `-o` names; its cells, which `label` names, are made from the file `texts`.
StudyRun kept_run(const Arguments& arguments, const std::string& texts, const char* label) {
    keep_apart(arguments.text("--output"), texts);
    return {.store_path = arguments.text("--output"), .threads = arguments.count("--threads"), .label = label};
}

/// `kv perplexity -o`: a study with a document in each batch, whose store `kv frontier --model` reads and resumes too.
int perplexity_study(const Arguments& arguments, const validation::PerplexityPlan& plan) {
    const StudyRun study = kept_run(arguments, plan.tokens, "documents");
    const auto experiment = perplexity_experiment(plan, {command_line(), arguments.has("--seed")});
    return run_study(arguments, experiment, study, [&](validation::Database& store) {
        const validation::KvTable table = kv_table(store);
        if (arguments.json())
            print_json(reports::frontier_json(table, "added_nats", {}).set("notes", experiment.notes));
        else
            print_text(reports::frontier_text(table, "added_nats", {}));
    });
}

int perplexity(const Arguments& arguments) {
    require_model_and_tokens(arguments);
    validation::PerplexityPlan plan = read_perplexity_plan(arguments);
    if (arguments.has("--output")) return perplexity_study(arguments, plan);
    validation::Perplexity found;
    {
        ProgressDisplay display(arguments, "passes");
        plan.progress = [&](std::size_t done, std::size_t of) { display.show(done, of); };
        found = validation::measure_perplexity(plan);
    }
    if (arguments.json())
        print_json(reports::perplexity_json(found));
    else
        print_text(reports::perplexity_text(found));
    return 0;
}

void show_answers(const Arguments& arguments, const validation::GeneratedAnswers& found) {
    if (arguments.has("--plot"))
        reports::write_picture(
            reports::answer_figure(found, *find_enum<reports::AnswerRows>(arguments.text("--plot-rows"))),
            arguments.text("--plot"));
    if (arguments.json())
        print_json(reports::answers_json(found));
    else
        print_text(reports::answers_text(found, arguments.verbose()));
}

/// `kv retrieve --prompts-file -o`: a study with a prompt in each batch.
int answers_study(const Arguments& arguments, const validation::AnswerPlan& plan) {
    const StudyRun study = kept_run(arguments, plan.prompts, "prompts");
    keep_apart(arguments.text("--plot"), study.store_path);
    const auto open = std::make_shared<const validation::OpenAnswers>(validation::open_answers(plan));
    const auto experiment = answers_experiment(open, {command_line(), arguments.has("--seed")});
    return run_study(arguments, experiment, study, [&](validation::Database& store) {
        if (const auto found = stored_answers(store, *open)) show_answers(arguments, *found);
    });
}

/// `kv retrieve --prompts-file`.
int answer(const Arguments& arguments) {
    validation::AnswerPlan plan = read_answer_plan(arguments);
    keep_apart(arguments.text("--plot"), plan.prompts);
    if (arguments.has("--output")) return answers_study(arguments, plan);
    validation::GeneratedAnswers found;
    {
        ProgressDisplay display(arguments, "answers");
        plan.progress = [&](std::size_t done, std::size_t of, double share) {
            display.expect_from(share);
            display.show(done, of);
        };
        found = validation::measure_answers(plan);
    }
    show_answers(arguments, found);
    return 0;
}

int retrieve(const Arguments& arguments) {
    if (arguments.has("--prompts-file")) return answer(arguments);
    validation::RetrievalPlan plan;
    plan.dumps = arguments.positionals;
    if (plan.dumps.empty() && !arguments.has("--model"))
        throw usage_error("neither dumps nor --model: name dumps with needles, or the folder of a retrieval model");
    plan.dump = read_dump_options(arguments);
    read_needles(arguments, plan);
    for (const auto& dump : plan.dumps) keep_apart(arguments.text("--plot"), dump);
    plan.last_layer_only = arguments.text("--layers") == "last";
    if (!plan.dumps.empty() && arguments.has("--layers") && !plan.last_layer_only)
        throw usage_error("--layers all needs the model (a dump redoes its last layer only): give --model");
    validation::Retrieval found;
    {
        ProgressDisplay display(arguments, "passes");
        plan.progress = [&](std::size_t done, std::size_t of) { display.show(done, of); };
        found = validation::measure_retrieval(plan);
    }
    if (arguments.has("--plot")) reports::write_picture(reports::needle_figure(found), arguments.text("--plot"));
    if (arguments.json())
        print_json(reports::retrieval_json(found));
    else
        print_text(reports::retrieval_text(found, arguments.verbose()));
    return 0;
}

int dump(const Arguments& arguments) {
    require_model_and_tokens(arguments);
    const std::string& folder = arguments.text("--model");
    const std::string& path = arguments.text("--output");
    require_dump_name(path);
    const sim::LlamaConfig shape = sim::read_llama_config(folder);
    const auto documents = validation::read_documents(arguments.text("--tokens"), shape, shape.context + 1);
    const std::size_t which = arguments.count("--document");
    if (which >= documents.size())
        throw usage_error("--document {} is not possible: {} has {}, from 0 on", which, arguments.text("--tokens"),
                          documents.size());
    std::span<const std::int32_t> tokens = documents[which];
    tokens = tokens.first(std::min(tokens.size(), shape.context));
    const sim::PassMemory memory = sim::dump_memory(shape, sim::LlamaWeights(folder).bytes(), tokens.size());
    say_memory(arguments, memory, tokens.size(), 1, "rows to write");
    sim::require_memory(memory, tokens.size());
    const sim::Llama model(folder);
    sim::LlamaDumpOptions options{.model = std::filesystem::path(folder + "/").parent_path().filename().string(),
                                  .prompt_id = fmt::format("document-{}", which),
                                  .dtype = read_dtype(arguments)};
    if (arguments.has("--name")) options.model = arguments.text("--name");
    {
        ProgressDisplay display(arguments, "tokens");
        options.progress = [&](std::size_t done, std::size_t of) { display.show(done, of); };
        sim::write_llama_dump(path, model, tokens, options);
    }
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.dump/1"},
                                 {"file", path},
                                 {"model", options.model},
                                 {"prompt_id", options.prompt_id},
                                 {"layers", shape.layers},
                                 {"heads", shape.kv_heads},
                                 {"query_heads", shape.heads},
                                 {"tokens", tokens.size()},
                                 {"head_dim", shape.head_dim}}));
    else
        print_text(fmt::format(
            "wrote {}: {} tokens, {} layers of {} heads of {}\nnext: spiked kv inspect {}; spiked kv run {}\n", path,
            tokens.size(), shape.layers, shape.kv_heads, shape.head_dim, path, path));
    return 0;
}

}  // namespace

Command kv_dump_command() {
    return {
        "kv dump",
        "run a model on a text and write its keys, values and queries as a dump",
        {"spiked kv dump --model model/ --tokens pages.npy -o page-0.safetensors",
         "spiked kv dump --model model/ --tokens pages.npy --document 3 --dtype f32 -o page-3.safetensors"},
        {},
        0,
        0,
        {model_option(),
         {"--tokens", file_with({".npy"}),
          "token ids, one document per row; tokens beyond the model's context are left out"},
         {"-o,--output", file_with({".safetensors"}, "DUMP.safetensors"), "where to write it", "kv-dump.safetensors"},
         {"--document", whole("N"), "document to run: row of --tokens, counted from 0", "0"},
         {"--name", any_text("NAME"), "name of the model in the metadata; by default that of the folder"},
         dtype_option()},
        dump};
}

Command kv_retrieve_command() {
    std::vector<OptionSpec> options = {
        model_beside_dumps(storage_options()),
        model_method_option(),
        several_bits_option("1,2,3"),
        budget_option(),
        plot_option("the attention of the first prompt's questions before and after compression as a picture, or of "
                    "--prompts-file a heatmap of the recall by context"),
        {.key = "--plot-rows",
         .value = one_of<reports::AnswerRows>(),
         .help = "rows of that heatmap",
         .fallback = "depth",
         .needs = {{"--prompts-file", "--plot"}, "it is for the heatmap of its answers"}},
        store_option("keep every answer to --prompts-file in a store; the same command again resumes",
                     {{"--prompts-file"}, "it keeps the answers to that file"}),
        threads_option(),
    };
    options.insert(options.begin() + 1, needle_options().begin(), needle_options().end());
    const auto details = in_group(
        how_it_is_measured,
        {{"--layers", one_of({"all", "last"}), "layers to compress; of dumps only the last", "all"}, block_option()});
    options = joined({options, details, storage_options(), quantizer_options()});
    return {"kv retrieve",
            "measure how often a model, or its last layer in a dump, still finds needles (keys with values) in a "
            "compressed context",
            {"spiked kv retrieve --model model/",
             "spiked kv retrieve needles-a.safetensors needles-b.safetensors --plot attention.svg",
             "spiked kv retrieve --model model/ --needles 240 --prompts 32 --method tq-mse,kivi --bits 2 -v",
             "spiked kv retrieve --model model/ --method tq-mse,snapkv,snapkv+tq-mse --bits 2 --budget 0.07",
             "spiked kv retrieve --model instruct/ --prompts-file prompts.json --method tq-mse --plot recall.svg",
             "spiked kv retrieve --model instruct/ --prompts-file prompts.json --bits 2,3 -o answers.spiked"},
            dump_value("DUMP"),
            0,
            1 << 20,
            options,
            retrieve};
}

Command kv_perplexity_command() {
    std::vector<OptionSpec> options = {
        model_option(),
        {"--tokens", file_with({".npy"}), "token ids, one document per row"},
        documents_option(),
        model_method_option(),
        several_bits_option("2,3,4"),
        budget_option(),
        store_option(
            "keep every document's numbers in a store and print the table of kv frontier --model; the same command "
            "again resumes"),
        threads_option(),
    };
    const auto details = in_group(
        how_it_is_measured,
        {{"--only", several(any_text("LAYER:SIDE"), "LAYER:SIDE[,...]"),
          "compress only these parts of the cache: the keys or the values (SIDE) of a layer, counted from 0", "", true},
         {"--extra-bits", several(any_text("LAYER:SIDE=N"), "LAYER:SIDE=N[,...]"),
          "bits that these parts of the cache take beyond --bits, or fewer where N is negative", "", true},
         {"--sinks", whole("N"), "number of first tokens that stay in fp16, which the bits count", "0"},
         block_option()});
    options = joined({options, details, quantizer_options()});
    return {"kv perplexity",
            "run a model on its own compressed cache and measure how many nats per token compression adds to its loss",
            {"spiked kv perplexity --model model/ --tokens pages.npy",
             "spiked kv perplexity --model model/ --tokens pages.npy --method tq-mse --bits 1,2 --only 0:key,0:value",
             "spiked kv perplexity --model model/ --tokens pages.npy --method snapkv,h2o+tq-mse --budget 0.1,0.2",
             "spiked kv perplexity --model model/ --tokens pages.npy --documents 8 -o nats.spiked"},
            {},
            0,
            0,
            options,
            perplexity};
}

}  // namespace spiked::app
