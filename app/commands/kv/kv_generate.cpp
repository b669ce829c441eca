#include <fmt/format.h>

#include "app/cli/command.hpp"
#include "app/options/dump_options.hpp"
#include "core/runtime/error.hpp"
#include "sim/kv/kv_like.hpp"

namespace spiked::app {
namespace {

int run_kv_generate(const Arguments& arguments) {
    const std::string& path = arguments.text("--output");
    require_dump_name(path);
    sim::KvLikeOptions options;
    options.tokens = arguments.count("--tokens");
    options.head_dim = arguments.count("--head-dim");
    options.context.rank = arguments.count("--context-rank");
    options.noise.scale = arguments.number("--noise");
    options.queries.heads = arguments.count("--query-heads");
    if (arguments.has("--no-rotary"))
        options.rotary.reset();
    else
        options.rotary->rope.base = arguments.number("--rotary-base");
    if (arguments.has("--no-sink")) options.sink.reset();

    sim::KvLikeCache cache;
    cache.layers = arguments.count("--layers");
    cache.heads = arguments.count("--heads");
    cache.dtype = read_dtype(arguments);
    cache.seed = stream::StudySeed::parse(arguments.text("--seed"));
    cache.replicate = arguments.count("--prompt");
    cache.needles = arguments.count("--needles");
    cache.needle_logit = arguments.number("--needle-logit");
    sim::write_kv_like(path, options, cache);

    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.generate/1"},
                                 {"file", path},
                                 {"layers", cache.layers},
                                 {"heads", cache.heads},
                                 {"query_heads", cache.heads * options.queries.heads},
                                 {"tokens", options.tokens},
                                 {"head_dim", options.head_dim},
                                 {"seed", cache.seed.text()},
                                 {"prompt", static_cast<std::int64_t>(cache.replicate)},
                                 {"needles", cache.needles},
                                 {"model", sim::describe(options)}}));
    else
        print_text(fmt::format("wrote {}\nnext: spiked kv inspect {}; spiked kv {} {}{}\n", path, path,
                               cache.needles > 0 ? "retrieve" : "run", path,
                               cache.needles == 0 && options.tokens < validation::KvPlan{}.block_tokens
                                   ? fmt::format(" --block {}", options.tokens)
                                   : ""));
    return 0;
}

}  // namespace

Command kv_generate_command() {
    const sim::KvLikeOptions options;
    const sim::KvLikeCache cache;
    std::vector<OptionSpec> all = {
        {"-o,--output", file_with({".safetensors"}, "DUMP.safetensors"), "where to write it", "kv-like.safetensors"},
        {"--tokens", whole("T", 1), "number of tokens in the sequence", std::to_string(options.tokens)},
        {"--head-dim", whole("D", 2), "channels of a head", std::to_string(options.head_dim)},
        {"--layers", whole("L", 1), "number of layers, each with its own parameters", std::to_string(cache.layers)},
        {"--heads", whole("H", 1), "number of key and value heads in a layer", std::to_string(cache.heads)},
        {"--query-heads", whole("Q"), "number of query heads for each key and value head",
         std::to_string(options.queries.heads)},
        dtype_option(),
        {"--prompt", whole("P"), "number of the prompt; other numbers give other prompts of the same model", "0"},
        {"--seed", any_text("HEX"), "seed of the model and its prompts", "0x5eed"}};
    const auto of_tokens =
        in_group("The statistics of the tokens",
                 {{"--context-rank", whole("R"), "dimension of the context, the subspace that all tokens share",
                   std::to_string(options.context.rank)},
                  {"--noise", number("S", {.least = 0.0}), "scale of the part that is independent between tokens",
                   fmt::format("{:g}", options.noise.scale)},
                  {"--rotary-base", number("B", {.above = 1.0}), "base of the rotary embedding of keys and queries",
                   fmt::format("{:g}", options.rotary->rope.base)},
                  {"--no-rotary", {}, "leave the rotary embedding out"},
                  {"--no-sink", {}, "leave the attention sink out"}});
    const auto of_needles = in_group(
        "Needles for kv retrieve",
        {{"--needles", whole("N"),
          "number of needles for kv retrieve: a key and a value planted among the tokens of the last layer, for which "
          "its last tokens ask",
          "0"},
         {"--needle-logit", number("L", {.above = 0.0}),
          "attention logit of a question at its needle; above about 8, needles are found at any noise",
          fmt::format("{:g}", cache.needle_logit)}});
    all = joined({all, of_tokens, of_needles});
    return {
        "kv generate",
        "write an attention-like KV cache with known statistics as a dump",
        {"spiked kv generate -o like.safetensors",
         "spiked kv generate -o like.safetensors --tokens 4096 --head-dim 128 --layers 4 --heads 8 --prompt 3",
         "spiked kv generate -o like.safetensors --tokens 1024 --needles 32 && spiked kv retrieve like.safetensors"},
        {},
        0,
        0,
        all,
        run_kv_generate};
}

}  // namespace spiked::app
