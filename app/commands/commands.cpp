#include "app/cli/command.hpp"

// The table of subcommands. Each is defined in a file of its own without a header, and declared here.
namespace spiked::app {

Command demo_command();
Command init_command();
Command run_command();
Command report_command();
Command show_command();
Command export_command();
Command merge_command();
Command compare_command();
Command replay_command();
Command spectrum_command();
Command pca_command();
Command quantize_command();
Command kv_inspect_command();
Command kv_generate_command();
Command kv_run_command();
Command kv_frontier_command();
Command kv_encode_command();
Command kv_decode_command();
Command kv_golden_command();
Command kv_adequacy_command();
Command kv_retrieve_command();
Command kv_perplexity_command();
Command kv_dump_command();
Command theory_command();
Command bench_theory_command();
Command bench_trial_command();
Command bench_model_command();
Command bench_decompose_command();
Command bench_quantize_command();
Command bench_cache_command();
Command validate_command();
Command selftest_command();
Command list_command();
Command doctor_command();
Command completion_command();

const std::vector<Command>& commands() {
    static const std::vector<Command> table = [] {
        std::vector<Command> all;
        const auto add = [&](const char* topic, const std::vector<Command>& commands) {
            for (const auto& command : commands) all.emplace_back(command).topic = topic;
        };
        add("A matrix", {spectrum_command(), pca_command(), quantize_command(), theory_command()});
        add("A KV cache", {kv_dump_command(), kv_inspect_command(), kv_frontier_command(), kv_run_command(),
                           kv_encode_command(), kv_decode_command(), kv_adequacy_command(), kv_perplexity_command(),
                           kv_retrieve_command(), kv_generate_command(), kv_golden_command()});
        add("A study of many simulated matrices, or of caches, with checks",
            {demo_command(), init_command(), run_command(), report_command(), show_command(), export_command(),
             merge_command(), compare_command(), replay_command()});
        add("The paper's statements", {validate_command(), selftest_command()});
        add("This program",
            {list_command(), doctor_command(), completion_command(), bench_decompose_command(), bench_trial_command(),
             bench_quantize_command(), bench_cache_command(), bench_theory_command(), bench_model_command()});
        return all;
    }();
    return table;
}

}  // namespace spiked::app
