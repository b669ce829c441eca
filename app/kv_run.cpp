#include "app/command.hpp"
#include "app/method_options.hpp"
#include "app/progress.hpp"
#include "reports/kv_report.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "validation/kv_measurement.hpp"

namespace spiked::app {
namespace {

int run(const Arguments& arguments) {
    validation::KvPlan plan;
    plan.dumps = arguments.positionals;
    plan.methods = arguments.list("--method");
    plan.bits = read_bits(arguments);
    plan.block_tokens = arguments.count("--block");
    for (const auto layer : arguments.counts("--layers")) plan.layers.insert(layer);
    for (const auto head : arguments.counts("--heads")) plan.heads.insert(head);
    if (const std::string side = arguments.text("--side"); side == "key" || side == "value")
        plan.side = side == "key" ? sim::Side::key : sim::Side::value;
    else if (!side.empty())
        throw usage_error("--side \"{}\" is not possible{}", side,
                          suggestion(side, std::vector<std::string>{"key", "value"}));
    plan.dump.layout = arguments.text("--layout");
    plan.dump.tensor_pattern = arguments.text("--tensor");
    plan.dump.prompt_id_key = arguments.text("--prompt-id");
    plan.quantizer = read_quantizer_options(arguments);
    plan.threads = arguments.count("--threads");

    const validation::KvTable table = [&] {
        ProgressDisplay display(arguments, "blocks");
        return measure_dumps(plan, [&](std::size_t done, std::size_t total) { display.show(done, total); });
    }();
    if (arguments.json())
        print_json(reports::kv_json(table));
    else
        print_text(reports::kv_text(table));
    return 0;
}

}  // namespace

Command kv_run_command() {
    std::vector<Option> options = {
        {"--method", "NAME[,NAME...]", "what to compare; spiked list shows all",
         "tq-mse,svd:1+tq-mse,eoptshrink+tq-mse", true},
        {"--bits", "B[,B...]", "index bits an entry", "2,3,4", true},
        {"--block", "TOKENS", "tokens of a block", "128", false},
        {"--layers", "L[,L...]", "only these layers", "", true},
        {"--heads", "H[,H...]", "only these heads", "", true},
        {"--side", "key|value", "only this side", "", false},
        {"--tensor", "PATTERN", "names of the tensors", "layers.{layer}.{side}", false},
        {"--layout", "head,token,dim", "order of the axes, where the file does not say", "", false},
        {"--prompt-id", "KEY", "metadata key that names the prompt", "prompt_id", false},
        {"--threads", "N", "0: all of the machine; never changes a number", "0", false},
    };
    options.insert(options.end(), quantizer_options().begin(), quantizer_options().end());
    return {"kv run",
            "compress every block of KV dumps and print the paper's table with error bars",
            {"spiked kv run dump.safetensors",
             "spiked kv run a.safetensors b.safetensors --method tq-mse --bits 2,4 --json",
             "spiked kv run dump.safetensors --side key --layers 0,1"},
            "DUMP...",
            1,
            1 << 20,
            options,
            run};
}

}  // namespace spiked::app
