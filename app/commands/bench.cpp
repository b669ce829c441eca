#include <fmt/format.h>

#include <algorithm>

#include "app/cli/command.hpp"
#include "app/options/model_options.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/printable.hpp"
#include "core/timing/stopwatch.hpp"
#include "estimators/caches/bench/cache_bench.hpp"
#include "estimators/quantizers/bench/quantize_bench.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/bench/decompose_bench.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/timing_figure.hpp"
#include "reports/tables/text_table.hpp"
#include "theory/laws/bench/theory_bench.hpp"
#include "validation/model/bench/model_bench.hpp"
#include "validation/trials/bench/device_bench.hpp"
#include "validation/trials/bench/trial_bench.hpp"

namespace spiked::app {
namespace {

Json document(const std::vector<Timing>& timings) {
    Json rows = Json::array();
    for (const auto& timing : timings)
        rows.push(Json::object({{"what", timing.what}, {"median", timing.median}, {"p10", timing.p10}}));
    return Json::object({{"schema", "spiked.bench/1"}, {"unit", "us"}, {"rows", std::move(rows)}});
}

std::string timing_rows(const std::vector<Timing>& timings, int digits) {
    reports::TextTable table({"what", "median", "p10"});
    for (const auto& timing : timings)
        table.add(
            {timing.what, fmt::format("{:.{}f}", timing.median, digits), fmt::format("{:.{}f}", timing.p10, digits)});
    return table.text();
}

std::string table(const std::vector<Timing>& timings) {
    return timing_rows(timings, 1) +
           "microseconds of processor time; p10 is close to the time on a quiet machine: compare ratios within one "
           "run.\n";
}

/// Returns the seconds to measure, after the other options are checked.
double seconds_of(const Arguments& arguments) {
    if (arguments.has("--plot")) (void)reports::picture_format(arguments.text("--plot"));
    return arguments.number("--seconds");
}

void plot(const Arguments& arguments, const std::string& title, const std::vector<Timing>& timings) {
    if (arguments.has("--plot"))
        reports::write_picture(reports::timing_figure(title, timings), arguments.text("--plot"));
}

int run_theory(const Arguments& arguments) {
    const auto timings = time_interleaved(theory::benchmark_jobs(), seconds_of(arguments));
    plot(arguments, "Theory", timings);
    arguments.json() ? print_json(document(timings)) : print_text(table(timings));
    return 0;
}

double p10(const std::vector<Timing>& timings, std::string_view what) {
    return std::find_if(timings.begin(), timings.end(), [&](const Timing& row) { return row.what == what; })->p10;
}

std::string numpy_line(const Json& numpy) {
    const auto text = [&](const char* key) { return *numpy.find(key)->string(); };
    return fmt::format("NumPy {} of Python {} on {}\n", text("numpy"), text("python"), text("blas"));
}

std::string ratios(const std::vector<Timing>& timings) {
    std::string text;
    for (const char* ours : {"spiked", "spiked-eigenbasis-hadamard"})
        text +=
            fmt::format("{} is {:.1f} times as fast as numpy and {:.1f} times as fast as numpy-eigh (p10).\n", ours,
                        p10(timings, "numpy") / p10(timings, ours), p10(timings, "numpy-eigh") / p10(timings, ours));
    return text;
}

/// Returns the device to be compared with the CPU. Throws usage_error if it is the CPU itself, as when `auto` finds no
/// GPU, or if several are named.
spiked::cuda::Device device_beside_the_cpu(const Arguments& arguments) {
    auto device = spiked::cuda::choose_device(arguments.text("--device"));
    if (device.backend == spiked::cuda::Backend::cpu)
        throw usage_error("--device {} is the CPU{}: leave --device out, or name cuda:0 or emulated",
                          arguments.text("--device"), device.note.empty() ? "" : " (" + device.note + ")");
    if (device.numbers.size() > 1)
        throw usage_error("--device {}: several devices are named (only one is timed): name one",
                          arguments.text("--device"));
    return device;
}

Json device_document(const validation::DeviceTimings& timed, std::size_t threads) {
    return document(timed.rows)
        .set("threads", threads)
        .set("clock", "wall")
        .set("batch", timed.batch)
        .set("rows_of_block", timed.shape.rows)
        .set("cols_of_block", timed.shape.columns);
}

constexpr const char* wall_clock_note =
    "microseconds of wall-clock time a block, in batches of {} in the memory of the device; cpu: {} threads; p10 is "
    "close to the time on a quiet machine.\n";

int run_decompose_on_device(const Arguments& arguments, estimators::Shape shape, std::size_t wanted,
                            estimators::Precision precision) {
    const auto device = device_beside_the_cpu(arguments);
    const std::size_t threads = thread_count(0);
    const auto timed = validation::time_device_decompositions(
        device, shape, wanted, precision == estimators::Precision::float32, threads, seconds_of(arguments));
    const std::string backend(name_of(device.backend));
    plot(arguments,
         fmt::format("All singular values and {} vectors a side of {} x {}, {}, {} beside {} threads", wanted,
                     shape.rows, shape.columns, enum_name(precision), backend, threads),
         timed.rows);
    if (arguments.json()) {
        print_json(device_document(timed, threads).set("precision", enum_name(precision)).set("vectors", wanted));
        return 0;
    }
    const double ours = p10(timed.rows, backend);
    std::string text = timing_rows(timed.rows, 3);
    text += fmt::format("{}: {:.0f} blocks a second at {:.3g} Gflop/s, {:.3g} times the CPU's", backend, 1e6 / ours,
                        1e-3 * estimators::operations(shape, wanted) / ours, p10(timed.rows, "cpu") / ours);
    for (const auto& row : timed.rows)
        if (row.what.starts_with("cusolver")) text += fmt::format(", {:.3g} times {}'s", row.p10 / ours, row.what);
    text += fmt::format(" (p10); {:.0f} bidiagonalisations a second\n", 1e6 / p10(timed.rows, backend + "-bidiagonal"));
    if (!timed.left_out.empty()) text += fmt::format("cuSOLVER is not timed: {}\n", timed.left_out);
    print_text(text +
               fmt::format("{} x {} in {}, all singular values and {} vectors a side; ", shape.rows, shape.columns,
                           enum_name(precision), wanted) +
               fmt::format(wall_clock_note, timed.batch, threads));
    return 0;
}

int run_quantize_on_device(const Arguments& arguments) {
    const auto device = device_beside_the_cpu(arguments);
    const std::size_t threads = thread_count(0);
    const auto timed = validation::time_device_quantizers(device, threads, seconds_of(arguments));
    plot(arguments,
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
                           timed.batch, 1e-3 * static_cast<double>(timed.batch) * p10(timed.rows, copied),
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
    plot(arguments, fmt::format("Trials of studies, {}, {} threads", size, threads), timings);
    if (arguments.json()) {
        print_json(document(timings)
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
                                1e6 / p10(timings, fmt::format("{}:{}", what, name_of(device.backend))),
                                p10(timings, fmt::format("{}:cpu", what)) /
                                    p10(timings, fmt::format("{}:{}", what, name_of(device.backend))));
    print_text(
        timing_rows(timings, 3) + text +
        fmt::format("microseconds of wall-clock time a trial of a study, {} threads: {}, two signals, eOptShrink; "
                    "coded: and tq-mse at 4 bits after a Haar rotation, with all metrics.\n",
                    threads, size));
    return 0;
}

int run_trial(const Arguments& arguments) {
    if (arguments.has("--device")) return run_on_device(arguments);
    for (const char* option : {"--rows", "--cols", "--precision"})
        if (arguments.has(option))
            throw usage_error(
                "{} has no effect without --device (one trial of 128 x 128 in float is timed): add "
                "--device, or leave {} out",
                option, option);
    const validation::TrialTimings timed = validation::time_trials(seconds_of(arguments));
    plot(arguments, "Whole trials and their parts, 128 x 128, float, one thread", timed.rows);
    if (arguments.json()) {
        print_json(document(timed.rows).set("numpy", timed.numpy).set("outcomes", timed.outcomes));
        return 0;
    }
    print_text(table(timed.rows) + ratios(timed.rows) +
               "A trial: 128 x 128 in float, signal of rank 4, 4 bits, one thread.\n" + numpy_line(timed.numpy));
    return 0;
}

int run_model(const Arguments& arguments) {
    require_model_and_tokens(arguments);
    const validation::ModelTimings timed =
        validation::time_model(arguments.text("--model"), arguments.text("--tokens"), seconds_of(arguments));
    const auto rate = [&](std::string_view what) { return 1e6 / p10(timed.rows, what); };
    if (arguments.json()) {
        print_json(document(timed.rows)
                       .set("tokens", timed.tokens)
                       .set("nats", timed.nats)
                       .set("nats_in_numpy", timed.nats_in_numpy)
                       .set("tokens_per_second", rate("spiked"))
                       .set("tokens_per_second_in_numpy", rate("numpy"))
                       .set("over_gemm_floor", p10(timed.rows, "spiked") / p10(timed.rows, "gemm-floor"))
                       .set("numpy", timed.numpy));
        return 0;
    }
    print_text(
        table(timed.rows) +
        fmt::format("A token, in a forward pass over {} in blocks of 128, with predictions, one thread: spiked {:.0f} "
                    "tokens a second, numpy {:.0f}, {:.2f} times as many; spiked takes {:.2f} times the gemm-floor, "
                    "the matrix products alone (p10).\n{:.6f} nats a token, numpy {:.6f}.\n",
                    timed.tokens, rate("spiked"), rate("numpy"), rate("spiked") / rate("numpy"),
                    p10(timed.rows, "spiked") / p10(timed.rows, "gemm-floor"), timed.nats, timed.nats_in_numpy) +
        numpy_line(timed.numpy));
    return 0;
}

int run_decompose(const Arguments& arguments) {
    const estimators::Shape shape{arguments.count("--rows"), arguments.count("--cols")};
    const std::size_t wanted = arguments.count("--vectors");
    const auto precision = enum_named<estimators::Precision>(arguments.text("--precision"), "--precision");
    if (arguments.has("--device")) return run_decompose_on_device(arguments, shape, wanted, precision);
    const auto time = precision == estimators::Precision::float32 ? estimators::time_decompositions<float>
                                                                  : estimators::time_decompositions<double>;
    const estimators::DecompositionTimings timed = time(shape, wanted, seconds_of(arguments));
    plot(arguments,
         fmt::format("All singular values and {} vectors a side of {} x {}, {}, one thread", wanted, shape.rows,
                     shape.columns, enum_name(precision)),
         timed.rows);
    if (arguments.json()) {
        print_json(document(timed.rows)
                       .set("precision", enum_name(precision))
                       .set("rows_of_block", shape.rows)
                       .set("cols_of_block", shape.columns)
                       .set("vectors", wanted)
                       .set("best_route", timed.best_route)
                       .set("numpy", timed.numpy)
                       .set("errors", timed.errors));
        return 0;
    }
    const auto ratio = [&](std::string_view to) { return p10(timed.rows, to) / p10(timed.rows, "spiked"); };
    print_text(
        table(timed.rows) +
        fmt::format("spiked is {:.1f} times as fast as armadillo, {:.1f} times as fast as lapack-best ({}), {:.1f} "
                    "times as fast as numpy, and takes {:.2f} times the gemm-floor (p10).\n",
                    ratio("armadillo"), ratio("lapack-best"), timed.best_route, ratio("numpy"),
                    1.0 / ratio("gemm-floor")) +
        fmt::format("{} x {} in {}, all singular values and {} vectors a side, one thread.\n", shape.rows,
                    shape.columns, enum_name(precision), wanted) +
        numpy_line(timed.numpy));
    return 0;
}

int run_quantize(const Arguments& arguments) {
    if (arguments.has("--device")) return run_quantize_on_device(arguments);
    const std::vector<Timing> timings = estimators::time_row_quantizers(seconds_of(arguments));
    plot(arguments, "Row quantizers on blocks of 128 x 128, float, bits packed, one thread", timings);
    if (arguments.json()) {
        print_json(document(timings));
        return 0;
    }
    const double gemm = p10(timings, "gemm");
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
            "--heads {} of --dim {} have {} channels in keys and values (a basis of at most 2048 is "
            "timed): choose fewer",
            layer.heads, layer.dimension, layer.channels());
    const estimators::CacheTimings timed = estimators::time_caches(layer, seconds_of(arguments));
    plot(arguments, "Caches of a layer, 128 tokens, one thread", timed.rows);
    const auto tokens_a_second = [](const Timing& row) { return 128e6 / row.p10; };
    if (arguments.json()) {
        Json json = document(timed.rows);
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
    const double gemm = p10(timed.rows, "gemm");
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

OptionSpec seconds_option(const std::string& fallback) {
    return {"--seconds", number("S", {.above = 0.0}), "about how many seconds to measure", fallback};
}

const OptionSpec plot_option = {"--plot", any_text("FILE"), "bar chart of the rates per second: .svg, .png or .pdf", "",
                                false};

}  // namespace

Command bench_decompose_command() {
    return {"bench decompose",
            "time the decomposition of a block, all singular values and leading vectors, in this program, in LAPACK "
            "and in NumPy",
            {"spiked bench decompose", "spiked bench decompose --rows 256 --cols 128 --precision double --json",
             "spiked bench decompose --device cuda:0"},
            {},
            0,
            0,
            {{"--rows", whole("N", 2, 4096), "number of rows in a block", "128", false},
             {"--cols", whole("D", 2, 4096), "number of columns in a block", "128", false},
             {"--precision", one_of({estimators::Precision::float32, estimators::Precision::float64}),
              "precision of the entries", "float", false},
             {"--vectors", whole("R"), "number of leading singular vectors on each side", "16", false},
             seconds_option("5"),
             {"--device", any_text("cuda:0|emulated"),
              "time batches on this device, on all processors and in NVIDIA's libraries instead, by the wall clock", "",
              false},
             plot_option},
            run_decompose};
}

Command bench_quantize_command() {
    return {"bench quantize",
            "time row quantizers, packing of bits included, relative to a matrix product",
            {"spiked bench quantize", "spiked bench quantize --seconds 20 --json",
             "spiked bench quantize --plot quantize.svg"},
            {},
            0,
            0,
            {seconds_option("5"),
             {"--device", any_text("cuda:0|emulated"),
              "time batches on this device and on all processors instead, by the wall clock", "", false},
             plot_option},
            run_quantize};
}

Command bench_cache_command() {
    return {"bench cache",
            "time the coding of a layer's cache: causal-klt and causal-klt-joint beside tq-mse and tcq",
            {"spiked bench cache", "spiked bench cache --heads 8 --dim 64 --bits 3 --json"},
            {},
            0,
            0,
            {{"--heads", whole("H", 1, 64), "number of heads of keys, and of values", "2", false},
             {"--dim", whole("D", 2, 1024), "channels of a head", "128", false},
             {"--bits", whole("B", 1, 8), "bits of an entry", "2", false},
             seconds_option("5"),
             plot_option},
            run_cache};
}

Command bench_theory_command() {
    return {"bench theory",
            "time computations of the theory: edge, threshold and strengths; density",
            {"spiked bench theory", "spiked bench theory --seconds 10 --json"},
            {},
            0,
            0,
            {seconds_option("2"), plot_option},
            run_theory};
}

Command bench_model_command() {
    return {
        "bench model",
        "time the forward pass of a model, in this program, in NumPy and of its matrix products alone",
        {"spiked bench model --model model/ --tokens pages.npy"},
        {},
        0,
        0,
        {{"--model", any_text("FOLDER"),
          "folder with config.json and safetensors of a Llama, Mistral, Qwen 2 or 3, or Phi-3 model", "", false},
         {"--tokens", file_with({".npy"}), "token ids, one document per row; only the first row is used", "", false},
         seconds_option("5")},
        run_model};
}

Command bench_trial_command() {
    return {"bench trial",
            "time a whole simulated trial, in this program and in NumPy",
            {"spiked bench trial", "spiked bench trial --seconds 20 --json",
             "spiked bench trial --device cuda:0 --rows 256 --cols 128 --precision double"},
            {},
            0,
            0,
            {{"--rows", whole("N", 2, 4096), "with --device: number of rows in a block", "128", false},
             {"--cols", whole("D", 2, 4096), "with --device: number of columns in a block", "128", false},
             {"--precision", one_of({estimators::Precision::float32, estimators::Precision::float64}),
              "with --device: precision of the entries", "float", false},
             seconds_option("5"),
             {"--device", any_text("cuda:0|emulated"),
              "time trials of studies on this device and on all processors instead, by the wall clock", "", false},
             plot_option},
            run_trial};
}

}  // namespace spiked::app
