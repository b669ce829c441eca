#include "app/commands/dump_options.hpp"

#include <map>

#include "core/runtime/error.hpp"
#include "sim/io/file_formats.hpp"

namespace spiked::app {
namespace {

std::optional<sim::Side> read_side(const Arguments& arguments) {
    const std::string side = arguments.text("--side");
    if (side.empty()) return std::nullopt;
    return side == "key" ? sim::Side::key : sim::Side::value;
}

}  // namespace

const std::vector<OptionSpec>& dump_options() {
    static const std::vector<OptionSpec> options = {
        block_option(),
        {"--layers", several(whole("L")), "only these layers", "", true},
        {"--heads", several(whole("H")), "only these heads", "", true},
        {"--side", one_of({"key", "value"}), "only this side", "", false},
        {"--tensor", any_text("PATTERN"), "name pattern of the tensors", "layers.{layer}.{side}", false},
        {"--layout", any_text("head,token,dim"), "order of the axes, if the file does not say", "", false},
        {"--prompt-id", any_text("KEY"), "metadata key that names the prompt", "prompt_id", false},
    };
    return options;
}

validation::KvPlan read_dump_plan(const Arguments& arguments) {
    validation::KvPlan plan;
    plan.dumps = arguments.positionals;
    plan.block_tokens = arguments.count("--block");
    for (const auto layer : arguments.counts("--layers")) plan.layers.insert(layer);
    for (const auto head : arguments.counts("--heads")) plan.heads.insert(head);
    plan.side = read_side(arguments);
    plan.dump.layout = arguments.text("--layout");
    plan.dump.tensor_pattern = arguments.text("--tensor");
    plan.dump.prompt_id_key = arguments.text("--prompt-id");
    return plan;
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

OptionSpec dtype_option() {
    return {"--dtype", one_of({"f16", "bf16", "f32", "f64"}), "format of the numbers in the file", "f16", false};
}

sim::DType read_dtype(const Arguments& arguments) {
    static const std::map<std::string, sim::DType> types = {
        {"f16", sim::DType::f16}, {"bf16", sim::DType::bf16}, {"f32", sim::DType::f32}, {"f64", sim::DType::f64}};
    return types.at(arguments.text("--dtype"));
}

}  // namespace spiked::app
