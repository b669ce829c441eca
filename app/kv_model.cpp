#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/command.hpp"
#include "app/dump_options.hpp"
#include "app/method_options.hpp"
#include "app/progress.hpp"
#include "reports/model_report.hpp"
#include "sim/llama/llama_dump.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "validation/perplexity.hpp"
#include "validation/retrieval.hpp"

// Commands that run a model.

namespace spiked::app {
namespace {

const Option model_option = {"--model", "FOLDER", "config.json and model.safetensors of a Llama-shaped model", "",
                             false};
const Option method_option = {"--method", "NAME[,NAME...]", "what the cache is sent through; spiked list shows all",
                              "tq-mse,svd:1+tq-mse,eoptshrink+tq-mse,unrope+eoptshrink+tq-mse", true};

const Option budget_option = {"--budget", "SHARE[,SHARE...]",
                              "of evictions (spiked list evictions, also in front of a method: snapkv+tq-mse): at most "
                              "this share of the bytes of all tokens in fp16",
                              "", true};

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

std::vector<validation::CacheRequest> read_methods(const Arguments& arguments) {
    std::vector<double> budgets;
    for (const auto& word : arguments.list("--budget")) {
        const auto share = to_number(word);
        if (!share) throw usage_error("--budget: \"{}\" is not a number", word);
        budgets.push_back(*share);
    }
    auto methods = arguments.list("--method");
    if (!budgets.empty() && !arguments.has("--method"))
        for (const auto& eviction : estimators::evictions()) methods.push_back(eviction.name);
    return validation::cache_requests(methods, read_bits(arguments), budgets);
}

int perplexity(const Arguments& arguments) {
    require(arguments, {"--model", "--tokens"});
    validation::PerplexityPlan plan;
    plan.model = arguments.text("--model");
    plan.tokens = arguments.text("--tokens");
    plan.methods = read_methods(arguments);
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

/// bos=0,ask=1,keys=512:1023,values=1024:1535
validation::NeedleVocabulary read_vocabulary(const Arguments& arguments) {
    validation::NeedleVocabulary words;
    for (const auto& entry : arguments.list("--vocabulary")) {
        const auto mistake = usage_error(
            "--vocabulary \"{}\" is not WORD=TOKEN or WORD=FIRST:LAST: write "
            "bos=0,ask=1,keys=512:1023,values=1024:1535",
            entry);
        const auto equals = entry.find('=');
        if (equals == std::string::npos) throw mistake;
        const std::string word = entry.substr(0, equals);
        const std::string tokens = entry.substr(equals + 1);
        const auto colon = tokens.find(':');
        const auto token = [&](const std::string& text) {
            const auto value = to_number(text);
            if (!value || !(*value >= 0.0 && *value < 2e9) || *value != std::floor(*value)) throw mistake;
            return static_cast<std::int32_t>(*value);
        };
        const std::int32_t first = token(tokens.substr(0, colon));
        const std::int32_t last = colon == std::string::npos ? first : token(tokens.substr(colon + 1));
        if (word == "bos")
            words.bos = first;
        else if (word == "ask")
            words.ask = first;
        else if (word == "keys")
            words.first_key = first, words.last_key = last;
        else if (word == "values")
            words.first_value = first, words.last_value = last;
        else
            throw mistake;
    }
    return words;
}

int retrieve(const Arguments& arguments) {
    validation::RetrievalPlan plan;
    plan.dumps = arguments.positionals;
    if (plan.dumps.empty() && !arguments.has("--model"))
        throw usage_error("neither dumps nor --model: name dumps with needles, or the folder of a retrieval model");
    if (!plan.dumps.empty())
        for (const char* option : {"--model", "--filler", "--vocabulary", "--needles", "--asked", "--prompts"})
            if (arguments.has(option))
                throw usage_error(
                    "{} belongs to prompts that are built for a model, and {} brings its own: leave one "
                    "of them out",
                    option, plan.dumps.front());
    plan.dump.layout = arguments.text("--layout");
    plan.dump.tensor_pattern = arguments.text("--tensor");
    plan.model = arguments.text("--model");
    plan.filler = arguments.has("--filler") ? arguments.text("--filler") : plan.model + "/filler.npy";
    plan.vocabulary = read_vocabulary(arguments);
    plan.needles = arguments.count("--needles");
    plan.asked = arguments.count("--asked");
    plan.prompts = arguments.count("--prompts");
    plan.methods = read_methods(arguments);
    plan.block_tokens = arguments.count("--block");
    const std::string layers = arguments.text("--layers");
    const std::vector<std::string> known = {"all", "last"};
    if (std::find(known.begin(), known.end(), layers) == known.end())
        throw usage_error("--layers \"{}\" is not possible{}", layers, suggestion(layers, known));
    plan.last_layer_only = layers == "last";
    if (!plan.dumps.empty() && arguments.has("--layers") && !plan.last_layer_only)
        throw usage_error("--layers all needs the model (a dump redoes its last layer only): give --model");
    plan.exact_questions = arguments.has("--exact-questions");
    plan.at_once = arguments.has("--at-once");
    plan.observe_questions = arguments.has("--observe-questions");
    plan.quantizer = read_quantizer_options(arguments);
    plan.threads = arguments.count("--threads");
    validation::Retrieval found;
    {
        ProgressDisplay display(arguments, "prompts");
        plan.progress = [&](std::size_t done, std::size_t of) { display.show(done, of); };
        found = validation::measure_retrieval(plan);
    }
    if (arguments.json())
        print_json(reports::retrieval_json(found));
    else
        print_text(reports::retrieval_text(found, arguments.verbose()));
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
            {model_option,
             {"--tokens", "FILE.npy", "token ids, a document a row; a token beyond the context is left out", "", false},
             {"-o,--output", "DUMP.safetensors", "where to write it", "kv-dump.safetensors", false},
             {"--document", "N", "row of the tokens", "0", false},
             {"--name", "NAME", "of the model, for the metadata; by default the folder's", "", false},
             dtype_option()},
            dump};
}

Command kv_retrieve_command() {
    std::vector<Option> options = {
        model_option,
        {"--needles", "N", "in a prompt", "16", false},
        {"--asked", "Q", "of them, at most", "32", false},
        {"--prompts", "P", "drawn from the seed", "64", false},
        method_option,
        {"--bits", "B[,B...]", "index bits an entry; ecsq also takes fractions", "1,2,3", true},
        {"--layers", "all|last", "which are compressed; of a dump the last", "all", false},
        budget_option,
        {"--exact-questions", "", "compress the context before the questions only", "", false},
        {"--at-once", "",
         "compress the context after all of it has been read, and no question; always so where a method evicts", "",
         false},
        {"--observe-questions", "", "evictions see the attention of the questions, too: they know what will be asked",
         "", false},
        {"--filler", "FILE.npy", "what lies between the needles, a stream of tokens a row [FOLDER/filler.npy]", "",
         false},
        {"--vocabulary", "WORD=TOKENS[,...]", "what tokens mean", "bos=0,ask=1,keys=512:1023,values=1024:1535", true},
        {"--block", "TOKENS", "tokens of a block", "128", false},
        {"--tensor", "PATTERN", "names of a dump's tensors", "layers.{layer}.{side}", false},
        {"--layout", "head,token,dim", "order of their axes, where the file does not say", "", false},
        {"--threads", "N", "0: all of the machine; never changes a number", "0", false},
    };
    options.insert(options.end(), quantizer_options().begin(), quantizer_options().end());
    return {"kv retrieve",
            "ask a model, or the last layer in a dump, for needles in a compressed context: which answers survive",
            {"spiked kv retrieve --model model/", "spiked kv retrieve needles-a.safetensors needles-b.safetensors",
             "spiked kv retrieve --model model/ --needles 240 --prompts 32 --method tq-mse,kivi --bits 2 -v",
             "spiked kv retrieve --model model/ --method tq-mse,snapkv,snapkv+tq-mse --bits 2 --budget 0.14"},
            "[DUMP...]",
            0,
            1 << 20,
            options,
            retrieve};
}

Command kv_perplexity_command() {
    std::vector<Option> options = {
        model_option,
        {"--tokens", "FILE.npy", "token ids, a document a row", "", false},
        method_option,
        {"--bits", "B[,B...]", "index bits an entry; ecsq also takes fractions", "2,3,4", true},
        budget_option,
        {"--only", "LAYER:SIDE[,...]", "compress only these; key or value", "", true},
        {"--block", "TOKENS", "tokens of a block", "128", false},
        {"--threads", "N", "0: all of the machine; never changes a number", "0", false},
    };
    options.insert(options.end(), quantizer_options().begin(), quantizer_options().end());
    return {"kv perplexity",
            "run a model on its own compressed cache: nats a token that compression adds",
            {"spiked kv perplexity --model model/ --tokens pages.npy",
             "spiked kv perplexity --model model/ --tokens pages.npy --method tq-mse --bits 1,2 --only 0:key,0:value",
             "spiked kv perplexity --model model/ --tokens pages.npy --method snapkv,h2o+tq-mse --budget 0.1,0.2"},
            "",
            0,
            0,
            options,
            perplexity};
}

}  // namespace spiked::app
