#include <fmt/format.h>

#include "app/commands/bench_parts.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/bench/decompose_bench.hpp"

namespace spiked::app {
namespace {

int run_decompose_on_device(const Arguments& arguments, estimators::Shape shape, std::size_t wanted,
                            estimators::Precision precision) {
    const auto device = device_beside_the_cpu(arguments);
    const std::size_t threads = thread_count(0);
    const auto timed = validation::time_device_decompositions(
        device, shape, wanted, precision == estimators::Precision::float32, threads, seconds_of(arguments));
    const std::string backend(name_of(device.backend));
    plot_timings(arguments,
                 fmt::format("All singular values and {} vectors a side of {} x {}, {}, {} beside {} threads", wanted,
                             shape.rows, shape.columns, enum_name(precision), backend, threads),
                 timed.rows);
    if (arguments.json()) {
        print_json(device_document(timed, threads).set("precision", enum_name(precision)).set("vectors", wanted));
        return 0;
    }
    const double ours = p10_of(timed.rows, backend);
    std::string text = timing_rows(timed.rows, 3);
    text += fmt::format("{}: {:.0f} blocks a second at {:.3g} Gflop/s, {:.3g} times the CPU's", backend, 1e6 / ours,
                        1e-3 * estimators::operations(shape, wanted) / ours, p10_of(timed.rows, "cpu") / ours);
    for (const auto& row : timed.rows)
        if (row.what.starts_with("cusolver")) text += fmt::format(", {:.3g} times {}'s", row.p10 / ours, row.what);
    text +=
        fmt::format(" (p10); {:.0f} bidiagonalisations a second\n", 1e6 / p10_of(timed.rows, backend + "-bidiagonal"));
    if (!timed.left_out.empty()) text += fmt::format("cuSOLVER is not timed: {}\n", timed.left_out);
    print_text(text +
               fmt::format("{} x {} in {}, all singular values and {} vectors a side; ", shape.rows, shape.columns,
                           enum_name(precision), wanted) +
               fmt::format(wall_clock_note, timed.batch, threads));
    return 0;
}

int run_decompose_on_threads(const Arguments& arguments, estimators::Shape shape, std::size_t wanted,
                             estimators::Precision precision) {
    const std::size_t threads = thread_count(arguments.count("--threads"));
    if (threads < 2)
        throw usage_error("--threads {} has nothing to compare with (one thread is timed beside it): pass 2 or more",
                          threads);
    const auto time = precision == estimators::Precision::float32 ? estimators::time_threads<float>
                                                                  : estimators::time_threads<double>;
    const std::vector<Timing> timings = time(shape, wanted, threads, seconds_of(arguments));
    plot_timings(arguments,
                 fmt::format("All singular values and {} vectors a side of {} x {}, {}", wanted, shape.rows,
                             shape.columns, enum_name(precision)),
                 timings);
    if (arguments.json()) {
        print_json(timing_document(timings)
                       .set("threads", threads)
                       .set("clock", "wall")
                       .set("precision", enum_name(precision))
                       .set("rows_of_block", shape.rows)
                       .set("cols_of_block", shape.columns)
                       .set("vectors", wanted));
        return 0;
    }
    print_text(
        timing_rows(timings, 1) +
        fmt::format(
            "{} threads are {:.2f} times as fast as one (p10).\nmicroseconds of wall-clock time a block: {} x {} in "
            "{}, all singular values and {} vectors a side; p10 is close to the time on a quiet machine.\n",
            threads, timings.front().p10 / timings.back().p10, shape.rows, shape.columns, enum_name(precision),
            wanted));
    return 0;
}

int run_decompose(const Arguments& arguments) {
    const estimators::Shape shape{arguments.count("--rows"), arguments.count("--cols")};
    const std::size_t wanted = arguments.count("--vectors");
    const auto precision = enum_named<estimators::Precision>(arguments.text("--precision"), "--precision");
    if (arguments.has("--device")) return run_decompose_on_device(arguments, shape, wanted, precision);
    if (arguments.has("--threads")) return run_decompose_on_threads(arguments, shape, wanted, precision);
    const auto time = precision == estimators::Precision::float32 ? estimators::time_decompositions<float>
                                                                  : estimators::time_decompositions<double>;
    const estimators::DecompositionTimings timed = time(shape, wanted, seconds_of(arguments));
    plot_timings(arguments,
                 fmt::format("All singular values and {} vectors a side of {} x {}, {}, one thread", wanted, shape.rows,
                             shape.columns, enum_name(precision)),
                 timed.rows);
    if (arguments.json()) {
        print_json(timing_document(timed.rows)
                       .set("precision", enum_name(precision))
                       .set("rows_of_block", shape.rows)
                       .set("cols_of_block", shape.columns)
                       .set("vectors", wanted)
                       .set("best_route", timed.best_route)
                       .set("numpy", timed.numpy)
                       .set("errors", timed.errors));
        return 0;
    }
    const auto ratio = [&](std::string_view to) { return p10_of(timed.rows, to) / p10_of(timed.rows, "spiked"); };
    print_text(
        timing_table(timed.rows) +
        fmt::format("spiked is {:.1f} times as fast as armadillo, {:.1f} times as fast as lapack-best ({}), {:.1f} "
                    "times as fast as numpy, and takes {:.2f} times the gemm-floor (p10).\n",
                    ratio("armadillo"), ratio("lapack-best"), timed.best_route, ratio("numpy"),
                    1.0 / ratio("gemm-floor")) +
        fmt::format("{} x {} in {}, all singular values and {} vectors a side, one thread.\n", shape.rows,
                    shape.columns, enum_name(precision), wanted) +
        numpy_line(timed.numpy));
    return 0;
}

}  // namespace

Command bench_decompose_command() {
    return {
        "bench decompose",
        "time the decomposition of a block, all singular values and leading vectors, in this program, in LAPACK and in "
        "NumPy",
        {"spiked bench decompose", "spiked bench decompose --rows 256 --cols 128 --precision double --json",
         "spiked bench decompose --rows 1024 --cols 1024 --threads 2", "spiked bench decompose --device cuda:0"},
        {},
        0,
        0,
        {{"--rows", whole("N", 2, 4096), "number of rows in a block", "128"},
         {"--cols", whole("D", 2, 4096), "number of columns in a block", "128"},
         {"--precision", one_of({estimators::Precision::float32, estimators::Precision::float64}),
          "precision of the entries", "float"},
         {"--vectors", whole("R"), "number of leading singular vectors on each side", "16"},
         seconds_option("5"),
         device_option(
             "time batches on this device, on all processors and in NVIDIA's libraries instead, by the wall clock"),
         {.key = "--threads",
          .value = whole("N", 0, 4096),
          .help = "time this program on N threads and on one instead, by the wall clock: a large block is shared, of "
                  "smaller ones each thread has a batch (0: one for each processor)",
          .excludes = {{"--device"}, "a device is timed beside all processors"}},
         bars_option()},
        run_decompose};
}

}  // namespace spiked::app
