#include <benchmark/benchmark.h>

#include <vector>

#include "estimators/svd/batch_decomposition.hpp"
#include "sim/random/normal.hpp"

// The decomposition that `spiked bench decompose` compares with other programs, timed alone and over several shapes,
// for work on the kernels.
//
//   decomposition_benchmark --benchmark_filter=float/128
namespace spiked::estimators {
namespace {

template <class Real>
void decompose(benchmark::State& state) {
    const Shape shape{static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1))};
    const auto wanted = static_cast<std::size_t>(state.range(2));
    constexpr std::size_t count = BatchDecomposition<Real>::lanes;
    std::vector<Real> blocks(count * shape.rows * shape.columns);
    stream::fill_normal(stream::Stream(stream::StudySeed::parse("0x5eed"), "benchmark", stream::Role::noise, 0),
                        std::span<Real>(blocks));
    BatchDecomposition<Real> batch(shape);
    arma::Mat<Real> left;
    arma::Mat<Real> right;
    for (auto _ : state) {
        batch.decompose(blocks);
        for (std::size_t b = 0; wanted > 0 && b < count; ++b) batch.leading_vectors(b, wanted, &left, &right);
        benchmark::DoNotOptimize(batch.singular_values(0).data());
    }
    state.SetLabel(batch.instructions());
    state.counters["a_block"] = benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(count),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void shapes(benchmark::internal::Benchmark* benchmark) {
    for (const auto& [n, d] : {std::pair{32, 32}, {64, 64}, {128, 32}, {128, 128}, {256, 128}, {256, 256}, {512, 512}})
        for (const int wanted : {0, 16}) benchmark->Args({n, d, wanted});
}

BENCHMARK_TEMPLATE(decompose, float)->Name("float")->Apply(shapes);
BENCHMARK_TEMPLATE(decompose, double)->Name("double")->Apply(shapes);

/// Each thread has its own batch: the counter a_block of two threads is half that of one where no resource is shared.
void threads(benchmark::internal::Benchmark* benchmark) {
    benchmark->Args({128, 128, 16})->Threads(1)->Threads(2)->UseRealTime();
}
BENCHMARK_TEMPLATE(decompose, float)->Name("float_threads")->Apply(threads);
BENCHMARK_TEMPLATE(decompose, double)->Name("double_threads")->Apply(threads);

}  // namespace
}  // namespace spiked::estimators

BENCHMARK_MAIN();
