#include "estimators/svd/bench/decompose_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <armadillo>
#include <cmath>
#include <type_traits>

#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/timing/numpy_peer.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/bench/decompose_numpy_program.hpp"
#include "estimators/svd/bench/lapack_routes.hpp"
#include "estimators/svd/decomposition.hpp"
#include "estimators/svd/two_stage/two_stage_reduction.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

template <class Real>
constexpr const char* precision = std::is_same_v<Real, float> ? "float" : "double";

}  // namespace

template <class Real>
std::vector<arma::Mat<Real>> benchmark_blocks(Shape shape, std::size_t count) {
    std::vector<arma::Mat<Real>> blocks;
    const auto seed = stream::StudySeed::parse("0x5eed");
    for (std::size_t b = 0; b < count; ++b) {
        arma::mat noise(shape.rows, shape.columns);
        stream::fill_normal(stream::Stream(seed, "bench decompose", stream::Role::noise, b),
                            std::span<double>(noise.memptr(), noise.n_elem));
        const std::size_t rank = std::min<std::size_t>(4, shape.short_side());
        arma::mat left(shape.rows, rank);
        arma::mat right(shape.columns, rank);
        stream::fill_normal(stream::Stream(seed, "bench decompose", stream::Role::left_vectors, b),
                            std::span<double>(left.memptr(), left.n_elem));
        stream::fill_normal(stream::Stream(seed, "bench decompose", stream::Role::right_vectors, b),
                            std::span<double>(right.memptr(), right.n_elem));
        const double top = std::sqrt(static_cast<double>(shape.rows)) + std::sqrt(static_cast<double>(shape.columns));
        for (std::size_t k = 0; k < rank; ++k)
            left.col(k) *= (6.0 - static_cast<double>(k)) * top /
                           std::sqrt(static_cast<double>(shape.rows) * static_cast<double>(shape.columns));
        blocks.push_back(arma::conv_to<arma::Mat<Real>>::from((noise + left * right.t()) /
                                                              std::sqrt(static_cast<double>(shape.columns))));
    }
    return blocks;
}
template std::vector<arma::fmat> benchmark_blocks<float>(Shape, std::size_t);
template std::vector<arma::mat> benchmark_blocks<double>(Shape, std::size_t);

namespace {

/// eOptShrink's estimate of the signal by the vectors of the short side: block times V diag(shrunk / s) V^T, or the
/// same from the left.
template <class Real>
void estimate_signal(BatchDecomposition<Real>& batch, std::size_t b, const arma::Mat<Real>& block, Shape shape,
                     arma::Mat<Real>& vectors, arma::Mat<Real>& estimate) {
    const auto values = batch.singular_values(b);
    const Shrinkage found = eoptshrink(values, shape);
    const bool tall = shape.rows >= shape.columns;
    batch.leading_vectors(b, found.rank, tall ? nullptr : &vectors, tall ? &vectors : nullptr);
    arma::Mat<Real> scaled = vectors;
    for (std::size_t k = 0; k < found.rank; ++k) scaled.col(k) *= static_cast<Real>(found.shrunk[k] / values[k]);
    if (tall)
        estimate = (block * scaled) * vectors.t();
    else
        estimate = vectors * (scaled.t() * block);
}

template <class Real>
Json checked(const std::string& what, const std::vector<double>& values, const std::vector<double>& reference,
             std::size_t wanted) {
    const double error = worst_error(values, reference, std::max<std::size_t>(1, wanted));
    // With the Gram matrix in float, small values are accurate only to the square root of float's precision.
    if (!(error < (std::is_same_v<Real, float> ? 2e-3 : 1e-10)))
        throw postcondition_error("{} finds values with a relative error of {:.2g}: unequal work is not compared", what,
                                  error);
    return Json::object({{"what", what}, {"leading_values", error}});
}

template <class Real>
struct ArmadilloSvd {
    arma::Mat<Real> left, right;
    arma::Col<Real> values;

    void run(const arma::Mat<Real>& block) {
        arma::svd_econ(left, values, right, block, "both", "dc");
        use_result(static_cast<double>(values(0)));
    }
};

/// As many blocks as the fast decomposition prefers, but no more than 64 MiB of them: large blocks come one by one.
template <class Real>
std::size_t blocks_in_batch(Shape shape) {
    const std::size_t most = (std::size_t{64} << 20) / (shape.rows * shape.columns * sizeof(Real));
    return std::clamp<std::size_t>(most, 1, BatchDecomposition<Real>::lanes);
}

template <class Real>
Job product_job(std::size_t n) {
    const arma::Mat<Real> a(n, n, arma::fill::randn);
    const arma::Mat<Real> b(n, n, arma::fill::randn);
    return {"gemm", [a, b, product = arma::Mat<Real>(n, n)]() mutable {
                product = a * b;
                use_result(static_cast<double>(product(0)));
            }};
}

/// Adds the entries that are derived from the timed ones: the fastest LAPACK route, and the time that the rate of the
/// product allows.
void add_best_and_floor(DecompositionTimings& timings, Shape shape, std::size_t wanted) {
    const auto entry = [&](const std::string& what) -> const Timing& {
        return *std::find_if(timings.rows.begin(), timings.rows.end(), [&](const Timing& t) { return t.what == what; });
    };
    Timing best{"lapack-best", 0.0, 0.0};
    for (const auto& name : lapack_routes()) {
        const Timing& one = entry("lapack-" + name);
        if (best.p10 > 0.0 && one.p10 >= best.p10) continue;
        best.median = one.median;
        best.p10 = one.p10;
        timings.best_route = name;
    }
    const double n = static_cast<double>(shape.short_side());
    const double products = operations(shape, wanted) / (2.0 * std::pow(n, 3.0));
    const Timing gemm = entry("gemm");
    timings.rows.push_back(best);
    timings.rows.push_back({"gemm-floor", gemm.median * products, gemm.p10 * products});
}

}  // namespace

double worst_error(const std::vector<double>& found, const std::vector<double>& reference, std::size_t leading) {
    double worst = 0.0;
    for (std::size_t k = 0; k < std::min(leading, reference.size()); ++k)
        worst = std::max(worst, std::abs(found[k] - reference[k]) / reference[0]);
    return worst;
}

double operations(Shape shape, std::size_t wanted) {
    const double m = static_cast<double>(shape.long_side());
    const double n = static_cast<double>(shape.short_side());
    return 4.0 * m * n * n - 4.0 * n * n * n / 3.0 + 2.0 * (m + n) * n * static_cast<double>(wanted);
}

template <class Real>
DecompositionTimings time_decompositions(Shape shape, std::size_t wanted, double seconds) {
    const std::size_t lanes = blocks_in_batch<Real>(shape);
    const auto blocks = benchmark_blocks<Real>(shape, lanes);
    const arma::Mat<Real>& first = blocks.front();
    std::vector<Real> contiguous;
    for (const auto& block : blocks) contiguous.insert(contiguous.end(), block.begin(), block.end());
    const std::vector<double> reference = singular_values(arma::conv_to<arma::mat>::from(first));
    wanted = std::min(wanted, shape.short_side());

    DecompositionTimings result;
    std::vector<Job> jobs;
    const auto check = [&](const std::string& what, const auto& values) {
        result.errors.push_back(checked<Real>(what, {values.begin(), values.end()}, reference, wanted));
    };

    // Blocks come in groups, as from the engine; a unit of work is one block.
    BatchDecomposition<Real> batch(shape);
    arma::Mat<Real> left;
    arma::Mat<Real> right;
    arma::Mat<Real> estimate;
    const auto add_job = [&](const char* what, auto&& each) {
        jobs.push_back(batch_job(what, lanes, [&, each] {
            batch.decompose(contiguous);
            for (std::size_t b = 0; b < lanes; ++b) each(b);
        }));
    };
    batch.decompose(contiguous);
    check("spiked", batch.singular_values(0));
    add_job("spiked", [&](std::size_t b) { batch.leading_vectors(b, wanted, &left, &right); });
    add_job("estimate", [&](std::size_t b) { estimate_signal(batch, b, blocks[b], shape, right, estimate); });

    ArmadilloSvd<Real> armadillo;
    armadillo.run(first);
    check("armadillo", armadillo.values);
    jobs.push_back({"armadillo", [&] { armadillo.run(first); }});

    std::vector<std::unique_ptr<LapackRoute<Real>>> routes;
    for (const auto& name : lapack_routes()) {
        routes.push_back(lapack_route<Real>(name, shape, wanted));
        auto* route = routes.back().get();
        route->run(first.memptr());
        check("lapack-" + name, route->values());
        jobs.push_back({"lapack-" + name, [route, &first] { route->run(first.memptr()); }});
    }

    NumpyPeer numpy(decompose_numpy_program,
                    Json::object({{"precision", precision<Real>}, {"rows", shape.rows}, {"columns", shape.columns}}),
                    [&](NumpyPeer& peer) { peer.send(first.memptr(), first.n_elem * sizeof(Real)); });
    result.numpy = numpy.description();
    numpy.say("values");
    check("numpy", NumpyPeer::numbers(numpy.answer(), "values"));
    jobs.push_back({"numpy", {}, [&](std::size_t units) {
                        numpy.say(fmt::format("time {}", units));
                        return NumpyPeer::number(numpy.answer(), "microseconds");
                    }});

    jobs.push_back(product_job<Real>(shape.short_side()));
    result.rows = time_interleaved(jobs, seconds);
    add_best_and_floor(result, shape, wanted);
    return result;
}

template DecompositionTimings time_decompositions<float>(Shape, std::size_t, double);
template DecompositionTimings time_decompositions<double>(Shape, std::size_t, double);

template <class Real>
std::vector<Timing> time_threads(Shape shape, std::size_t wanted, std::size_t threads, double seconds) {
    const bool alone = TwoStageReduction<Real>::serves(shape.short_side());
    const std::size_t lanes = alone ? 1 : blocks_in_batch<Real>(shape);
    std::vector<Real> contiguous;
    for (const auto& block : benchmark_blocks<Real>(shape, lanes))
        contiguous.insert(contiguous.end(), block.begin(), block.end());
    wanted = std::min(wanted, shape.short_side());
    const auto decompose = [&](BatchDecomposition<Real>& batch) {
        arma::Mat<Real> left;
        arma::Mat<Real> right;
        batch.decompose(contiguous);
        for (std::size_t b = 0; b < lanes; ++b) batch.leading_vectors(b, wanted, &left, &right);
        use_result(batch.singular_values(0)[0]);
    };
    // Of small blocks each thread decomposes some batches in a row, beside which it hardly counts that threads start.
    const double one = operations(shape, wanted) * static_cast<double>(lanes);
    const std::size_t in_a_row = alone ? 1 : static_cast<std::size_t>(std::ceil(3e8 / one));
    std::vector<BatchDecomposition<Real>> batches;
    for (std::size_t t = 0; t < (alone ? 1 : threads); ++t) batches.emplace_back(shape);
    BatchDecomposition<Real> shared(shape, Instructions::best, alone ? threads : 1);
    const auto job = [&](std::size_t count) {
        const std::size_t at_once = alone ? 1 : count;
        return batch_job(
            fmt::format("spiked:{}", count), lanes * in_a_row * at_once,
            [&, count, at_once] {
                if (alone) return decompose(count > 1 ? shared : batches.front());
                for_each_parallel(at_once, at_once, [&](std::size_t t) {
                    for (std::size_t i = 0; i < in_a_row; ++i) decompose(batches[t]);
                });
            },
            wall_microseconds);
    };
    return time_interleaved({job(1), job(threads)}, seconds);
}

template std::vector<Timing> time_threads<float>(Shape, std::size_t, std::size_t, double);
template std::vector<Timing> time_threads<double>(Shape, std::size_t, std::size_t, double);

}  // namespace spiked::estimators
