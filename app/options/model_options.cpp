#include "app/options/model_options.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/cli/progress.hpp"
#include "app/options/dump_options.hpp"
#include "app/options/method_options.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/names.hpp"

namespace spiked::app {
namespace {

/// Parses LAYER:key or LAYER:value; no value for anything else.
std::optional<std::pair<std::size_t, sim::Side>> cache_part(std::string_view word) {
    const auto colon = word.find(':');
    const auto layer = to_number(word.substr(0, colon));
    const auto side = find_enum<sim::Side>(colon == std::string_view::npos ? "" : word.substr(colon + 1));
    if (!layer || !(*layer >= 0.0 && *layer < 1e6) || *layer != std::floor(*layer) || !side || side == sim::Side::query)
        return std::nullopt;
    return std::pair{static_cast<std::size_t>(*layer), *side};
}

/// Parses lists such as 0:key,3:value.
codec::CachePart read_only(const Arguments& arguments) {
    codec::CachePart only;
    for (const auto& word : arguments.list("--only")) {
        const auto part = cache_part(word);
        if (!part) throw usage_error("--only \"{}\" is not LAYER:key or LAYER:value: write --only 0:key,3:value", word);
        only.insert(*part);
    }
    return only;
}

/// Parses lists such as 0:key=2,3:value=-1.
codec::ExtraBits read_extra_bits(const Arguments& arguments) {
    codec::ExtraBits extra;
    for (const auto& word : arguments.list("--extra-bits")) {
        const auto equals = word.find('=');
        const auto part = cache_part(word.substr(0, equals));
        const auto bits = to_number(equals == std::string::npos ? "" : word.substr(equals + 1));
        if (!part || !bits)
            throw usage_error("--extra-bits \"{}\" is not LAYER:SIDE=N: write --extra-bits 0:key=2,3:value=-1", word);
        if (!extra.emplace(*part, *bits).second)
            throw usage_error("--extra-bits names {} twice: leave one of them out", word.substr(0, equals));
    }
    return extra;
}

/// Parses lists such as bos=0,ask=1,keys=512:1023,values=1024:1535.
validation::NeedleVocabulary read_vocabulary(const Arguments& arguments) {
    validation::NeedleVocabulary words;
    for (const auto& entry : arguments.list("--vocabulary")) {
        const auto diagnostic = usage_error(
            "--vocabulary \"{}\" is not WORD=TOKEN or WORD=FIRST:LAST: write "
            "bos=0,ask=1,keys=512:1023,values=1024:1535",
            entry);
        const auto equals = entry.find('=');
        if (equals == std::string::npos) throw diagnostic;
        const std::string word = entry.substr(0, equals);
        const std::string tokens = entry.substr(equals + 1);
        const auto colon = tokens.find(':');
        const auto token = [&](const std::string& text) {
            const auto value = to_number(text);
            if (!value || !(*value >= 0.0 && *value < 2e9) || *value != std::floor(*value)) throw diagnostic;
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
            throw diagnostic;
    }
    return words;
}

std::vector<codec::CacheRequest> read_methods(const Arguments& arguments, bool rotated = true) {
    const std::vector<double> budgets = arguments.numbers("--budget");
    auto methods = arguments.has("--method") ? arguments.list("--method") : split(model_method_option().fallback, ',');
    if (!arguments.has("--method") && !rotated)
        std::erase_if(methods, [](const std::string& name) { return name.starts_with(estimators::unrope_prefix); });
    if (!budgets.empty() && !arguments.has("--method"))
        for (const auto& eviction : estimators::evictions()) methods.push_back(eviction.entry.name);
    auto requests = codec::cache_requests(methods, arguments.numbers("--bits"), budgets);
    std::vector<UsedOptions> used;
    for (const auto& request : requests) used.push_back(used_by(request.how));
    reject_unused_options(arguments, used);
    return requests;
}

/// A size of memory in few digits.
std::string memory_text(double bytes) {
    return bytes < 1e6   ? fmt::format("{:.0f} kB", bytes / 1e3)
           : bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6)
                         : fmt::format("{:.1f} GB", bytes / 1e9);
}

/// Says the forecasts of a plan in notes. A time that nobody waits for is not said.
validation::PassNotes pass_notes(const Arguments& arguments) {
    validation::PassNotes notes;
    if (arguments.quiet()) return notes;
    notes.memory = [&arguments](const sim::PassMemory& bytes, std::size_t tokens, std::size_t at_once) {
        say_memory(arguments, bytes, tokens, at_once, "the state of codecs");
    };
    notes.time = [&arguments](double seconds, std::size_t passes) {
        constexpr double short_wait = 10.0;
        if (seconds > short_wait)
            print_note(arguments, fmt::format("time: about {} for {} passes, from one block of the first text",
                                              duration_text(seconds), passes));
    };
    return notes;
}

}  // namespace

void say_memory(const Arguments& arguments, const sim::PassMemory& bytes, std::size_t tokens, std::size_t at_once,
                const char* state) {
    print_note(
        arguments,
        fmt::format("memory: {} of weights{}, {}{} of cache ({} tokens), {} of arrays and {} of {}",
                    memory_text(bytes.weights),
                    bytes.codecs > 0.0 ? fmt::format(" and {} of rotations", memory_text(bytes.codecs)) : "",
                    at_once > 1 ? fmt::format("and for each of at most {} threads ", at_once) : "",
                    memory_text(bytes.cache), tokens, memory_text(bytes.block), memory_text(bytes.state), state));
}

OptionSpec model_option() {
    return {"--model", any_text("FOLDER"),
            "folder with config.json and safetensors of a Llama, Mistral, Qwen 2 or 3, or Phi-3 model"};
}

OptionSpec model_beside_dumps(const std::vector<OptionSpec>& of_dumps) {
    OptionSpec model = model_option();
    model.excludes = {{"DUMP"}, "either dumps are measured or a model"};
    for (const OptionSpec& option : of_dumps)
        if (option.key != block_option().key && option.key != "--tokens")
            model.excludes.keys.push_back(long_name(option));
    return model;
}

void require_model_and_tokens(const Arguments& arguments) {
    for (const char* option : {"--model", "--tokens"})
        if (!arguments.has(option))
            throw usage_error(
                "{} is missing (a model reads tokens): write for example --model model/ --tokens pages.npy", option);
}

OptionSpec model_method_option() {
    return {"--method", names_from({"quantizers", "caches"}, several(any_text("NAME"))),
            "methods that compress the cache; spiked list shows all",
            "tq-mse,svd:1+tq-mse,eoptshrink+tq-mse,unrope+eoptshrink+tq-mse", true};
}

OptionSpec budget_option() {
    const OptionSpec budget = estimators::budget_spec();
    return {budget.key, several(budget.value),
            "memory of evictions (spiked list evictions; also before a method, as in snapkv+tq-mse): the kept tokens "
            "may take this fraction of the bytes that the tokens to compress take in fp16; at least one token must fit",
            "", true};
}

OptionSpec documents_option() {
    return {"--documents", whole("N", 1), "use only the first N documents of --tokens; by default all"};
}

const std::vector<OptionSpec>& needle_options() {
    const OtherOptions of_built_prompts{{"DUMP", "--prompts-file"}, "those have prompts of their own"};
    static const std::vector<OptionSpec> options = in_group(
        "Prompts with needles, for a model",
        {
            {.key = "--prompts-file",
             .value = file_with({".json"}),
             .help = "prompts for an instruct model, made by tools/needle-prompts; the model writes its answers",
             .needs = {{"--model"}, "a model answers them"},
             .excludes = {{"DUMP"}, "a dump has questions of its own"}},
            {.key = "--needles",
             .value = whole("N"),
             .help = "number of needles in a prompt: pairs of a key and a value, hidden in the filler",
             .fallback = "16",
             .excludes = of_built_prompts},
            {.key = "--asked",
             .value = whole("Q"),
             .help = "largest number of needles that a prompt asks for",
             .fallback = "32",
             .excludes = of_built_prompts},
            {.key = "--prompts",
             .value = whole("P", 1),
             .help = "number of prompts, which are drawn from the seed",
             .fallback = "64",
             .excludes = of_built_prompts},
            {.key = "--context",
             .value = whole("TOKENS", 1),
             .help =
                 "length of a prompt with its questions; by default the context of the model, or less if the filler "
                 "is shorter",
             .excludes = of_built_prompts},
            {"--exact-questions", {}, "compress only the context; the questions behind it stay exact"},
            {"--at-once",
             {},
             "compress the context only after the model has read all of it, and leave the questions exact; evictions "
             "always do so"},
            {"--observe-questions",
             {},
             "evictions also see the attention of all questions, so that they know what will be asked"},
            {.key = "--filler",
             .value = file_with({".npy"}),
             .help = "token ids of the text between the needles, one stream per row [FOLDER/filler.npy]",
             .excludes = of_built_prompts},
            {.key = "--vocabulary",
             .value = several(any_text("WORD=TOKENS"), "WORD=TOKENS[,...]"),
             .help = "token ids of the beginning, of a question, of keys and of values",
             .fallback = "bos=0,ask=1,keys=512:1023,values=1024:1535",
             .repeatable = true,
             .excludes = of_built_prompts},
        });
    return options;
}

validation::PerplexityPlan read_perplexity_plan(const Arguments& arguments) {
    validation::PerplexityPlan plan;
    plan.model = arguments.text("--model");
    plan.tokens = arguments.text("--tokens");
    if (arguments.has("--documents")) plan.documents = arguments.count("--documents");
    plan.methods = read_methods(arguments);
    plan.block_tokens = arguments.count("--block");
    plan.only = read_only(arguments);
    plan.extra_bits = read_extra_bits(arguments);
    if (arguments.has("--sinks")) plan.sinks = arguments.count("--sinks");
    plan.quantizer = read_quantizer_options(arguments);
    plan.threads = arguments.count("--threads");
    plan.notes = pass_notes(arguments);
    return plan;
}

void read_needles(const Arguments& arguments, validation::RetrievalPlan& plan) {
    plan.notes = pass_notes(arguments);
    plan.model = arguments.text("--model");
    plan.filler = arguments.has("--filler") ? arguments.text("--filler") : plan.model + "/filler.npy";
    if (!arguments.has("--filler") && std::filesystem::exists(plan.model + "/config.json") &&
        !std::filesystem::exists(plan.filler))
        throw input_error(
            "{}: no such file (needles are hidden between tokens of a filler): give --filler FILE.npy, and "
            "--vocabulary, which says what tokens mean",
            plan.filler);
    plan.vocabulary = read_vocabulary(arguments);
    plan.needles = arguments.count("--needles");
    plan.asked = arguments.count("--asked");
    plan.prompts = arguments.count("--prompts");
    if (arguments.has("--context")) plan.prompt_tokens = arguments.count("--context");
    plan.methods = read_methods(arguments, validation::all_have_rotary_keys(plan.dumps, plan.dump));
    plan.block_tokens = arguments.count("--block");
    plan.exact_questions = arguments.has("--exact-questions");
    plan.at_once = arguments.has("--at-once");
    plan.observe_questions = arguments.has("--observe-questions");
    plan.quantizer = read_quantizer_options(arguments);
    plan.threads = arguments.count("--threads");
}

validation::AnswerPlan read_answer_plan(const Arguments& arguments) {
    return {.model = arguments.text("--model"),
            .prompts = arguments.text("--prompts-file"),
            .methods = read_methods(arguments),
            .last_layer_only = arguments.text("--layers") == "last",
            .exact_questions = arguments.has("--exact-questions"),
            .at_once = arguments.has("--at-once"),
            .observe_questions = arguments.has("--observe-questions"),
            .block_tokens = arguments.count("--block"),
            .quantizer = read_quantizer_options(arguments),
            .threads = arguments.count("--threads"),
            .notes = pass_notes(arguments)};
}

}  // namespace spiked::app
