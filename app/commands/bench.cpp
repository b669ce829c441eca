#include <fmt/format.h>

#include <algorithm>

#include "app/commands/bench_parts.hpp"
#include "app/options/model_options.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/printable.hpp"
#include "core/timing/stopwatch.hpp"
#include "estimators/caches/bench/cache_bench.hpp"
#include "estimators/quantizers/bench/quantize_bench.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "reports/tables/text_table.hpp"
#include "theory/laws/bench/theory_bench.hpp"
#include "validation/model/bench/model_bench.hpp"
#include "validation/trials/bench/device_bench.hpp"
#include "validation/trials/bench/trial_bench.hpp"

namespace spiked::app {
namespace {

int run_theory(const Arguments& arguments) {
    const auto timings = time_interleaved(theory::benchmark_jobs(), seconds_of(arguments));
    plot_timings(arguments, "Theory", timings);
    arguments.json() ? print_json(timing_document(timings)) : print_text(timing_table(timings));
    return 0;
}

std::string ratios(const std::vector<Timing>& timings) {
    std::string text;
    for (const char* ours : {"spiked", "spiked-eigenbasis-hadamard"})
        text += fmt::format("{} is {:.1f} times as fast as numpy and {:.1f} times as fast as numpy-eigh (p10).\n", ours,
                            p10_of(timings, "numpy") / p10_of(timings, ours),
                            p10_of(timings, "numpy-eigh") / p10_of(timings, ours));
    return text;
}

int run_quantize_on_device(const Arguments& arguments) {
    const auto device = device_beside_the_cpu(arguments);
    const std::size_t threads = thread_count(0);
    const auto timed = validation::time_device_quantizers(device, threads, seconds_of(arguments));
    plot_timings(arguments,
                 fmt::format("Row quantizers on blocks of {0} x {0}, {1} beside {2} threads", timed.shape.rows,
                             name_of(device.backend), threads),
                 timed.rows);
    if (arguments.json()) {
        print_json(device_document(timed, threads));
        return 0;
    }
    const std::string copied = fmt::format("tq-mse:4:copied:{}", name_of(device.backend));
    print_text(timing_rows(timed.rows, 3) +
               fmt::format("tq-mse at 4 bits: {0} blocks in {1:.3f} ms between copies from and to pinned memory "
                           "(p10).\n{2} x {2} in float, bits packed; copied: encoded between such copies; ",
                           timed.batch, 1e-3 * static_cast<double>(timed.batch) * p10_of(timed.rows, copied),
                           timed.shape.rows) +
               fmt::format(wall_clock_note, timed.batch, threads));
    return 0;
}

int run_on_device(const Arguments& arguments) {
    const spiked::cuda::Device device = spiked::cuda::choose_device(arguments.text("--device"));
    const std::size_t threads = thread_count(0);
    const validation::BenchmarkTrials trials{
        {arguments.count("--rows"), arguments.count("--cols")},
        enum_named<estimators::Precision>(arguments.text("--precision"), "--precision")};
    const auto timings = validation::time_studies(device, trials, threads, seconds_of(arguments));
    const std::string size =
        fmt::format("{} x {} in {}", trials.shape.rows, trials.shape.columns, enum_name(trials.precision));
    plot_timings(arguments, fmt::format("Trials of studies, {}, {} threads", size, threads), timings);
    if (arguments.json()) {
        print_json(timing_document(timings)
                       .set("threads", threads)
                       .set("clock", "wall")
                       .set("rows_of_block", trials.shape.rows)
                       .set("cols_of_block", trials.shape.columns)
                       .set("precision", enum_name(trials.precision)));
        return 0;
    }
    std::string text;
    for (const char* what : {"dense", "eigenbasis", "coded"})
        if (device.backend != spiked::cuda::Backend::cpu)
            text += fmt::format("{}: {:.0f} trials a second, {:.3g} times the CPU's (p10)\n", what,
                                1e6 / p10_of(timings, fmt::format("{}:{}", what, name_of(device.backend))),
                                p10_of(timings, fmt::format("{}:cpu", what)) /
                                    p10_of(timings, fmt::format("{}:{}", what, name_of(device.backend))));
    print_text(
        timing_rows(timings, 3) + text +
        fmt::format("microseconds of wall-clock time a trial of a study, {} threads: {}, two signals, eOptShrink; "
                    "coded: and tq-mse at 4 bits after a Haar rotation, with all metrics.\n",
                    threads, size));
    return 0;
}

int run_trial(const Arguments& arguments) {
    if (arguments.has("--device")) return run_on_device(arguments);
    const validation::TrialTimings timed = validation::time_trials(seconds_of(arguments));
    plot_timings(arguments, "Whole trials and their parts, 128 x 128, float, one thread", timed.rows);
    if (arguments.json()) {
        print_json(timing_document(timed.rows).set("numpy", timed.numpy).set("outcomes", timed.outcomes));
        return 0;
    }
    print_text(timing_table(timed.rows) + ratios(timed.rows) +
               "A trial: 128 x 128 in float, signal of rank 4, 4 bits, one thread.\n" + numpy_line(timed.numpy));
    return 0;
}

int run_model(const Arguments& arguments) {
    require_model_and_tokens(arguments);
    const validation::ModelTimings timed =
        validation::time_model(arguments.text("--model"), arguments.text("--tokens"), seconds_of(arguments));
    const auto rate = [&](std::string_view what) { return 1e6 / p10_of(timed.rows, what); };
    if (arguments.json()) {
        print_json(timing_document(timed.rows)
                       .set("tokens", timed.tokens)
                       .set("nats", timed.nats)
                       .set("nats_in_numpy", timed.nats_in_numpy)
                       .set("tokens_per_second", rate("spiked"))
                       .set("tokens_per_second_in_numpy", rate("numpy"))
                       .set("over_gemm_floor", p10_of(timed.rows, "spiked") / p10_of(timed.rows, "gemm-floor"))
                       .set("numpy", timed.numpy));
        return 0;
    }
    print_text(
        timing_table(timed.rows) +
        fmt::format("A token, in a forward pass over {} in blocks of 128, with predictions, one thread: spiked {:.0f} "
                    "tokens a second, numpy {:.0f}, {:.2f} times as many; spiked takes {:.2f} times the gemm-floor, "
                    "the matrix products alone (p10).\n{:.6f} nats a token, numpy {:.6f}.\n",
                    timed.tokens, rate("spiked"), rate("numpy"), rate("spiked") / rate("numpy"),
                    p10_of(timed.rows, "spiked") / p10_of(timed.rows, "gemm-floor"), timed.nats, timed.nats_in_numpy) +
        numpy_line(timed.numpy));
    return 0;
}

int run_quantize(const Arguments& arguments) {
    if (arguments.has("--device")) return run_quantize_on_device(arguments);
    const std::vector<Timing> timings = estimators::time_row_quantizers(seconds_of(arguments));
    plot_timings(arguments, "Row quantizers on blocks of 128 x 128, float, bits packed, one thread", timings);
    if (arguments.json()) {
        print_json(timing_document(timings));
        return 0;
    }
    const double gemm = p10_of(timings, "gemm");
    reports::TextTable table({"what", "median", "p10", "p10 / gemm"});
    for (const auto& timing : timings)
        table.add({timing.what, fmt::format("{:.1f}", timing.median), fmt::format("{:.1f}", timing.p10),
                   fmt::format("{:.2f}", timing.p10 / gemm)});
    print_text(table.text() +
               "microseconds a block of 128 x 128 in float, bits packed, one thread; gemm is a product of two such "
               "blocks.\np10 is close to the time on a quiet machine.\n");
    return 0;
}

int run_cache(const Arguments& arguments) {
    const estimators::BenchmarkLayer layer{arguments.count("--heads"), arguments.count("--dim"),
                                           static_cast<double>(arguments.count("--bits"))};
    if (layer.channels() > 2048)
        throw usage_error(
            "--heads {} of --dim {} have {} channels in keys and values (a basis of at most 2048 is timed): choose "
            "fewer",
            layer.heads, layer.dimension, layer.channels());
    const estimators::CacheTimings timed = estimators::time_caches(layer, seconds_of(arguments));
    plot_timings(arguments, "Caches of a layer, 128 tokens, one thread", timed.rows);
    const auto tokens_a_second = [](const Timing& row) { return 128e6 / row.p10; };
    if (arguments.json()) {
        Json json = timing_document(timed.rows);
        Json rates = Json::object();
        for (const auto& row : timed.rows)
            if (row.what != "gemm") rates.set(row.what, tokens_a_second(row));
        Json states = Json::array();
        for (const auto& state : timed.states)
            states.push(Json::object({{"method", state.method},
                                      {"state_bytes", state.state_bytes},
                                      {"bits_per_entry", state.bits_per_entry}}));
        print_json(json.set("heads", layer.heads)
                       .set("dim", layer.dimension)
                       .set("bits", bits_json(layer.bits))
                       .set("tokens", 128)
                       .set("tokens_per_second", std::move(rates))
                       .set("states", std::move(states)));
        return 0;
    }
    const double gemm = p10_of(timed.rows, "gemm");
    reports::TextTable rows({"what", "median", "p10", "p10 / gemm", "tokens a second"});
    for (const auto& row : timed.rows)
        rows.add({row.what, fmt::format("{:.1f}", row.median), fmt::format("{:.1f}", row.p10),
                  fmt::format("{:.2f}", row.p10 / gemm), fmt::format("{:.0f}", tokens_a_second(row))});
    std::string text = rows.text();
    for (const auto& state : timed.states)
        text += fmt::format("{}: a state of {}, blocks of {:.2f} bits an entry\n", state.method,
                            bytes_text(state.state_bytes), state.bits_per_entry);
    print_text(text + fmt::format("microseconds of processor time for 128 tokens of a layer, keys and values of {} "
                                  "heads of {}, one thread; p10 is close to the time on a quiet machine.\n"
                                  "learn: encoding until the basis is final, once; encode, decode: blocks after that; "
                                  "read: what one head needs of a block; gemm: a product with {} x {}.\n",
                                  layer.heads, layer.dimension, layer.channels(), layer.channels()));
    return 0;
}

}  // namespace

Command bench_quantize_command() {
    return {
        "bench quantize",
        "time row quantizers, packing of bits included, relative to a matrix product",
        {"spiked bench quantize", "spiked bench quantize --seconds 20 --json",
         "spiked bench quantize --plot quantize.svg"},
        {},
        0,
        0,
        {seconds_option("5"),
         device_option("time batches on this device and on all processors instead, by the wall clock"), bars_option()},
        run_quantize};
}

Command bench_cache_command() {
    return {"bench cache",
            "time the coding of a layer's cache: causal-klt and causal-klt-joint beside tq-mse and tcq",
            {"spiked bench cache", "spiked bench cache --heads 8 --dim 64 --bits 3 --json"},
            {},
            0,
            0,
            {{"--heads", whole("H", 1, 64), "number of heads of keys, and of values", "2"},
             {"--dim", whole("D", 2, 1024), "channels of a head", "128"},
             {"--bits", whole("B", 1, 8), "bits of an entry", "2"},
             seconds_option("5"),
             bars_option()},
            run_cache};
}

Command bench_theory_command() {
    return {"bench theory",
            "time computations of the theory: edge, threshold and strengths; density",
            {"spiked bench theory", "spiked bench theory --seconds 10 --json"},
            {},
            0,
            0,
            {seconds_option("2"), bars_option()},
            run_theory};
}

Command bench_model_command() {
    return {"bench model",
            "time the forward pass of a model, in this program, in NumPy and of its matrix products alone",
            {"spiked bench model --model model/ --tokens pages.npy"},
            {},
            0,
            0,
            {{"--model", any_text("FOLDER"),
              "folder with config.json and safetensors of a Llama, Mistral, Qwen 2 or 3, or Phi-3 model"},
             {"--tokens", file_with({".npy"}), "token ids, one document per row; only the first row is used"},
             seconds_option("5")},
            run_model};
}

Command bench_trial_command() {
    const OtherOptions of_devices{{"--device"}, "one trial of 128 x 128 in float is timed"};
    return {"bench trial",
            "time a whole simulated trial, in this program and in NumPy",
            {"spiked bench trial", "spiked bench trial --seconds 20 --json",
             "spiked bench trial --device cuda:0 --rows 256 --cols 128 --precision double"},
            {},
            0,
            0,
            {{.key = "--rows",
              .value = whole("N", 2, 4096),
              .help = "with --device: number of rows in a block",
              .fallback = "128",
              .needs = of_devices},
             {.key = "--cols",
              .value = whole("D", 2, 4096),
              .help = "with --device: number of columns in a block",
              .fallback = "128",
              .needs = of_devices},
             {.key = "--precision",
              .value = one_of({estimators::Precision::float32, estimators::Precision::float64}),
              .help = "with --device: precision of the entries",
              .fallback = "float",
              .needs = of_devices},
             seconds_option("5"),
             device_option("time trials of studies on this device and on all processors instead, by the wall clock"),
             bars_option()},
            run_trial};
}

}  // namespace spiked::app
