#pragma once
#include <string>
#include <vector>

#include "estimators/shrinkage.hpp"
#include "theory/base/json.hpp"
#include "theory/base/stopwatch.hpp"

namespace spiked::estimators {

struct DecompositionTimings {
    std::vector<Timing> rows;
    std::string best_route;  ///< through LAPACK
    Json numpy;              ///< what NumPy ran on
    /// Of each program on the same block: largest error of a leading value against LAPACK in double, over the largest.
    std::vector<Json> errors;
};

/// Times all singular values and `wanted` leading vectors of a block (noise and four outliers), in turn, one thread:
///   spiked            a batch of blocks through BatchDecomposition, a block
///   estimate          the same with eOptShrink's estimate of the signal instead of a fixed number of vectors
///   armadillo         svd_econ, divide and conquer
///   lapack-gesdd, lapack-ROUTE (lapack_routes.hpp), lapack-best the fastest of them
///   numpy             numpy.linalg.svd without full matrices; it computes floats in double
///   gemm              an n x n x n product, n the short side
///   gemm-floor        (4 m n^2 - 4 n^3 / 3 + 2 (m + n) n wanted) operations at the rate of that product
template <class Real>
[[nodiscard]] DecompositionTimings time_decompositions(Shape shape, std::size_t wanted, double seconds);

extern template DecompositionTimings time_decompositions<float>(Shape, std::size_t, double);
extern template DecompositionTimings time_decompositions<double>(Shape, std::size_t, double);

}  // namespace spiked::estimators
