#include <fmt/format.h>

#include <filesystem>

#include "app/command.hpp"
#include "app/dump_options.hpp"
#include "app/method_options.hpp"
#include "app/progress.hpp"
#include "reports/perplexity_report.hpp"
#include "sim/llama/llama_dump.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "validation/kv_measurement.hpp"
#include "validation/perplexity.hpp"

// Commands that run a model.

namespace spiked::app {
namespace {

/// 0:key,3:value
std::set<std::pair<std::size_t, sim::Side>> read_only(const Arguments& arguments) {
    std::set<std::pair<std::size_t, sim::Side>> only;
    for (const auto& word : arguments.list("--only")) {
        const auto colon = word.find(':');
        const auto layer = to_number(word.substr(0, colon));
        const std::string side = colon == std::string::npos ? "" : word.substr(colon + 1);
        if (!layer || !(*layer >= 0.0 && *layer < 1e6) || *layer != static_cast<double>(static_cast<long>(*layer)) ||
            (side != "key" && side != "value"))
            throw usage_error("--only \"{}\" is not LAYER:key or LAYER:value: write --only 0:key,3:value", word);
        only.emplace(static_cast<std::size_t>(*layer), side == "key" ? sim::Side::key : sim::Side::value);
    }
    return only;
}

void require(const Arguments& arguments, std::initializer_list<const char*> options) {
    for (const char* option : options)
        if (!arguments.has(option)) throw usage_error("{} is missing: --help shows how it is used", option);
}

int perplexity(const Arguments& arguments) {
    require(arguments, {"--model", "--tokens"});
    validation::PerplexityPlan plan;
    plan.model = arguments.text("--model");
    plan.tokens = arguments.text("--tokens");
    plan.codecs = validation::named_codecs(arguments.list("--method"), read_bits(arguments));
    plan.block_tokens = arguments.count("--block");
    plan.only = read_only(arguments);
    plan.quantizer = read_quantizer_options(arguments);
    plan.threads = arguments.count("--threads");
    validation::Perplexity found;
    {
        ProgressDisplay display(arguments, "documents");
        plan.progress = [&](std::size_t done, std::size_t of) { display.show(done, of); };
        found = validation::measure_perplexity(plan);
    }
    if (arguments.json())
        print_json(reports::perplexity_json(found));
    else
        print_text(reports::perplexity_text(found));
    return 0;
}

int dump(const Arguments& arguments) {
    require(arguments, {"--model", "--tokens"});
    const std::string& folder = arguments.text("--model");
    const std::string& path = arguments.text("--output");
    const sim::Llama model(folder);
    const auto documents =
        validation::read_documents(arguments.text("--tokens"), model.config(), model.config().context + 1);
    const std::size_t which = arguments.count("--document");
    if (which >= documents.size())
        throw usage_error("--document {} is not possible: {} has {}, from 0 on", which, arguments.text("--tokens"),
                          documents.size());
    std::span<const std::int32_t> tokens = documents[which];
    tokens = tokens.first(std::min(tokens.size(), model.config().context));
    sim::LlamaDumpOptions options{.model = std::filesystem::path(folder + "/").parent_path().filename().string(),
                                  .prompt_id = fmt::format("document-{}", which),
                                  .dtype = read_dtype(arguments)};
    if (arguments.has("--name")) options.model = arguments.text("--name");
    sim::write_llama_dump(path, model, tokens, options);
    const auto& shape = model.config();
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
    return {"kv dump",
            "run a model over a text and write its keys, values and queries as a dump",
            {"spiked kv dump --model model/ --tokens pages.npy -o page-0.safetensors",
             "spiked kv dump --model model/ --tokens pages.npy --document 3 --dtype f32 -o page-3.safetensors"},
            "",
            0,
            0,
            {{"--model", "FOLDER", "config.json and model.safetensors of a Llama-shaped model", "", false},
             {"--tokens", "FILE.npy", "token ids, a document a row; a token beyond the context is left out", "", false},
             {"-o,--output", "DUMP.safetensors", "where to write it", "kv-dump.safetensors", false},
             {"--document", "N", "row of the tokens", "0", false},
             {"--name", "NAME", "of the model, for the metadata; by default the folder's", "", false},
             dtype_option()},
            dump};
}

Command kv_perplexity_command() {
    std::vector<Option> options = {
        {"--model", "FOLDER", "config.json and model.safetensors of a Llama-shaped model", "", false},
        {"--tokens", "FILE.npy", "token ids, a document a row", "", false},
        {"--method", "NAME[,NAME...]", "what the cache is sent through; spiked list shows all",
         "tq-mse,svd:1+tq-mse,eoptshrink+tq-mse,unrope+eoptshrink+tq-mse", true},
        {"--bits", "B[,B...]", "index bits an entry; ecsq also takes fractions", "2,3,4", true},
        {"--only", "LAYER:SIDE[,...]", "compress only these; key or value", "", true},
        {"--block", "TOKENS", "tokens of a block", "128", false},
        {"--threads", "N", "0: all of the machine; never changes a number", "0", false},
    };
    options.insert(options.end(), quantizer_options().begin(), quantizer_options().end());
    return {"kv perplexity",
            "run a model on its own compressed cache: nats a token that compression adds",
            {"spiked kv perplexity --model model/ --tokens pages.npy",
             "spiked kv perplexity --model model/ --tokens pages.npy --method tq-mse --bits 1,2 --only 0:key,0:value"},
            "",
            0,
            0,
            options,
            perplexity};
}

}  // namespace spiked::app
