#include "app/command.hpp"
#include "app/method_options.hpp"
#include "app/progress.hpp"
#include "reports/perplexity_report.hpp"
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

int perplexity(const Arguments& arguments) {
    validation::PerplexityPlan plan;
    plan.model = arguments.text("--model");
    plan.tokens = arguments.text("--tokens");
    plan.codecs = validation::named_codecs(arguments.list("--method"), read_bits(arguments));
    plan.block_tokens = arguments.count("--block");
    plan.only = read_only(arguments);
    plan.quantizer = read_quantizer_options(arguments);
    plan.threads = arguments.count("--threads");
    for (const char* needed : {"--model", "--tokens"})
        if (!arguments.has(needed)) throw usage_error("{} is missing: spiked kv perplexity --help shows how", needed);
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

}  // namespace

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
