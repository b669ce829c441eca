#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "core/timing/stopwatch.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// Blocks with noise of variance 1/d and outliers at 6, 5, 4 and 3 times the upper edge of the noise.
template <class Real>
[[nodiscard]] std::vector<arma::Mat<Real>> benchmark_blocks(Shape shape, std::size_t count);

/// Largest error of the first `leading` values, as a fraction of the largest value.
[[nodiscard]] double worst_error(const std::vector<double>& found, const std::vector<double>& reference,
                                 std::size_t leading);

/// Floating-point operations of a bidiagonalisation and of the back-transformation of `wanted` vectors per side: 4 m
/// n^2 - 4 n^3 / 3 + 2 (m + n) n wanted.
[[nodiscard]] double operations(Shape shape, std::size_t wanted);

struct DecompositionTimings {
    std::vector<Timing> rows;
    std::string best_route;  ///< the fastest LAPACK route
    Json numpy;              ///< libraries and threads of NumPy
    /// For each program, on the same block: the largest error of a leading value against LAPACK in double, divided by
    /// the largest value.
    std::vector<Json> errors;
};

/// Times all singular values and `wanted` leading vectors of a block (noise and four outliers), with one thread. The
/// timings of the programs are interleaved:
///
///   spiked            BatchDecomposition of a batch of blocks; time per block
///   estimate          the same with eOptShrink's estimate of the signal instead of a fixed number of vectors
///   armadillo         svd_econ, divide and conquer
///   lapack-gesdd, lapack-ROUTE (lapack_routes.hpp), lapack-best the fastest of them
///   numpy             numpy.linalg.svd without full matrices; it computes floats in double
///   gemm              an n x n x n product, n the short side
///   gemm-floor        operations() at the rate of that product
template <class Real>
[[nodiscard]] DecompositionTimings time_decompositions(Shape shape, std::size_t wanted, double seconds);

/// The same work by BatchDecomposition on one thread and on `threads`, by the wall clock, in microseconds a block:
/// `spiked:1` and `spiked:THREADS`. Blocks that are reduced in two stages come one by one and are shared by the
/// threads; of smaller ones every thread has a batch of its own.
template <class Real>
[[nodiscard]] std::vector<Timing> time_threads(Shape shape, std::size_t wanted, std::size_t threads, double seconds);

extern template DecompositionTimings time_decompositions<float>(Shape, std::size_t, double);
extern template DecompositionTimings time_decompositions<double>(Shape, std::size_t, double);
extern template std::vector<Timing> time_threads<float>(Shape, std::size_t, std::size_t, double);
extern template std::vector<Timing> time_threads<double>(Shape, std::size_t, std::size_t, double);

}  // namespace spiked::estimators
