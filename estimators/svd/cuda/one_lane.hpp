#pragma once
#include <cmath>
#include <cstddef>

#include "core/device/team.hpp"

namespace spiked::estimators::cuda {

/// The registers of the CPU's kernels (decomposition_kernels.hpp) for a thread of a GPU: one double.
struct OneLane {
    using Real = double;
    using Vector = double;
    static constexpr std::size_t width = 1;

    SPIKED_DEVICE static double set(double x) { return x; }
    SPIKED_DEVICE static double load(const double* from) { return *from; }
    SPIKED_DEVICE static void store(double* to, double x) { *to = x; }
    SPIKED_DEVICE static double fma(double a, double b, double c) { return std::fma(a, b, c); }
    SPIKED_DEVICE static double fnma(double a, double b, double c) { return std::fma(-a, b, c); }
    SPIKED_DEVICE static double abs(double x) { return std::fabs(x); }
    using Inverse = double;
    SPIKED_DEVICE static double inverse(double x) { return spiked::cuda::fast_inverse(x); }
    SPIKED_DEVICE static double times(double x, double y) { return x * y; }
    SPIKED_DEVICE static double where_less(double a, double b, double yes, double no) { return a < b ? yes : no; }
    SPIKED_DEVICE static double where_equal(double a, double b, double yes, double no) { return a == b ? yes : no; }
};

}  // namespace spiked::estimators::cuda
