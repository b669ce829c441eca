#include "app/options/dump_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/kv/dump_formats.hpp"

namespace spiked::app {
namespace {

void reject_model_folder(const std::string& path) {
    std::error_code none;
    if (std::filesystem::exists(std::filesystem::path(path) / "config.json", none))
        throw input_error(
            "{}: is the folder of a model (a file with its cache is needed): write one with spiked kv dump --model {} "
            "--tokens IDS.npy -o dump.safetensors",
            path, shell_word(path));
}

}  // namespace

constexpr const char* part_of_a_cache = "Parts and blocks of a cache";

const std::vector<OptionSpec>& storage_options() {
    static const std::vector<OptionSpec> options = in_group(
        "How the file stores a cache",
        {
            {"--format", one_of(sim::dump_formats().names()),
             "the program that wrote the file, whose names and layouts are known (spiked list formats)"},
            {"--tensor,--pattern", any_text("PATTERN"),
             "names of the tensors, with {layer}, {side}, {head} and {chunk} where they stand [layers.{layer}.{side}]"},
            {"--layout", any_text("head,token,dim"),
             "order of the axes, if the file does not say: head, token, dim, and batch, layer, side, block (pages) or "
             "hidden (heads and dim in one); for each side: 'key=head,dim,token value=head,token,dim'"},
            {"--head-dim", whole("D", 1), "channels of a head, where one axis holds all heads"},
            {"--batch", whole("B"), "which sequence of a batch, from 0"},
            {"--block-table", any_text("PAGE[,PAGE...]"), "pages of a paged cache in the order of the sequence"},
            {"--scale", any_text("PATTERN|NUMBER"),
             "scale of FP8 or int8 codes: a number, or names of tensors as in layers.{layer}.{side}_scale"},
            {"--zero-point", any_text("PATTERN|NUMBER"), "code of the number 0, likewise"},
            {"--codes", one_of<sim::CodeType>(),
             "what bytes (dtype U8 or I8) are: FP8 of two kinds, or signed integers"},
        });
    return options;
}

const std::vector<OptionSpec>& token_options() {
    static const std::vector<OptionSpec> options = in_group(
        part_of_a_cache,
        {
            {"--tokens", any_text("FIRST:LAST"),
             "only the tokens from FIRST (counted from 0) up to LAST, without LAST; either may be left out"},
            {"--skip-empty", {}, "leave out tokens that are zero in every head: padding, unused parts of a cache"},
        });
    return options;
}

sim::DumpOptions read_dump_options(const Arguments& arguments) {
    for (const auto& path : arguments.positionals) reject_model_folder(path);
    sim::DumpOptions options;
    options.format = arguments.text("--format");
    options.tensor_pattern = arguments.text("--pattern");
    options.layout = arguments.text("--layout");
    if (arguments.has("--head-dim")) options.head_dim = arguments.count("--head-dim");
    if (arguments.has("--batch")) options.batch = arguments.count("--batch");
    options.block_table = arguments.text("--block-table");
    options.scale = arguments.text("--scale");
    options.zero_point = arguments.text("--zero-point");
    options.codes = arguments.text("--codes");
    options.tokens = arguments.text("--tokens");
    options.skip_empty = arguments.has("--skip-empty");
    if (arguments.has("--prompt-id")) options.prompt_id_key = arguments.text("--prompt-id");
    sim::check_options(options);
    return options;
}

const std::vector<OptionSpec>& dump_options() {
    static const std::vector<OptionSpec> options = [] {
        const std::vector<OptionSpec> all =
            in_group(part_of_a_cache, {
                                          {"--layers", several(whole("L")), "only these layers", "", true},
                                          {"--heads", several(whole("H")), "only these heads", "", true},
                                          {"--side", one_of({sim::Side::key, sim::Side::value}), "only this side"},
                                      });
        const auto blocks = in_group(
            part_of_a_cache,
            {block_option(), {"--prompt-id", any_text("KEY"), "metadata key that names the prompt", "prompt_id"}});
        return joined({all, token_options(), blocks, storage_options()});
    }();
    return options;
}

validation::KvPlan read_dump_plan(const Arguments& arguments) {
    validation::KvPlan plan;
    plan.dumps = arguments.positionals;
    plan.block_tokens = arguments.count("--block");
    for (const auto layer : arguments.counts("--layers")) plan.layers.insert(layer);
    for (const auto head : arguments.counts("--heads")) plan.heads.insert(head);
    plan.side = find_enum<sim::Side>(arguments.text("--side"));
    plan.dump = read_dump_options(arguments);
    plan.dump.layers = plan.layers;
    plan.dump.side = plan.side;
    return plan;
}

Json dump_settings(const Arguments& arguments) {
    Json settings = Json::object();
    for (const auto& option : dump_options())
        if (const std::string name = long_name(option); arguments.has(name))
            settings.set(name, fmt::format("{}", fmt::join(arguments.list(name), ",")));
    return settings;
}

validation::KvPlan read_dump_plan(const Json& settings, std::vector<std::string> dumps) {
    Arguments arguments;
    arguments.positionals = std::move(dumps);
    for (const auto& option : dump_options()) {
        const std::string name = long_name(option);
        if (!option.fallback.empty()) arguments.fallbacks[name] = option.fallback;
        if (const Json* value = settings.find(name); value != nullptr && value->string() != nullptr)
            arguments.given[name] =
                value->string()->empty() ? std::vector<std::string>{} : std::vector{*value->string()};
    }
    return read_dump_plan(arguments);
}

OptionSpec block_option(std::string help) {
    return {"--block", whole("TOKENS", 1), std::move(help), std::to_string(validation::KvPlan{}.block_tokens)};
}

void require_dump_name(const std::string& output) {
    if (!output.ends_with(".safetensors"))
        throw usage_error("{}: the dump is written as safetensors: name it FILE.safetensors", output);
}

ValueSpec dump_value(std::string shown) { return file_with(sim::dump_suffixes(), std::move(shown)); }

ValueSpec matrix_value() { return file_with(sim::matrix_suffixes(), sim::matrix_forms()); }

/// The types of numbers that dumps are written with, by their names.
static const std::vector<std::pair<std::string, sim::DType>>& written_types() {
    static const std::vector<std::pair<std::string, sim::DType>> types = {
        {"f16", sim::DType::f16}, {"bf16", sim::DType::bf16}, {"f32", sim::DType::f32}, {"f64", sim::DType::f64}};
    return types;
}

OptionSpec dtype_option() {
    std::vector<std::string> names;
    for (const auto& [name, type] : written_types()) names.push_back(name);
    return {"--dtype", one_of(std::move(names)), "format of the numbers in the file", "f16"};
}

sim::DType read_dtype(const Arguments& arguments) {
    const auto& types = written_types();
    return std::ranges::find(types, arguments.text("--dtype"), &std::pair<std::string, sim::DType>::first)->second;
}

}  // namespace spiked::app
