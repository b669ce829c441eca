#pragma once
#include <vector>

namespace spiked::theory {

/// The scalar quantizer of least mean square error for one symmetric law of variance 1.
struct Codebook {
    int bits = 0;
    std::vector<double> levels;         ///< all 2^bits, ascending; levels[i] == -levels[2^bits - 1 - i] exactly
    std::vector<double> thresholds;     ///< 2^bits - 1, ascending, midpoints of neighbouring levels
    std::vector<double> probabilities;  ///< probabilities of the 2^bits bins; symmetric, sum 1
    double distortion = 0.0;            ///< E[(z - c(z))^2], the D_b of the paper
    double entropy_bits = 0.0;          ///< entropy of the bin index, at most `bits`
    double linear_gain = 0.0;           ///< E[z c(z)], the kappa_b of the paper; 1 - distortion for these codebooks
};

/// Lloyd-Max codebooks (Lloyd 1982, Max 1960; research note quantizers.md 2) of 1 to 8 bits, computed and not
/// tabulated: Newton's method on the positive half of the levels, in extended precision, with bins integrated by
/// Gauss-Legendre. Centroids are computed from integrals centred in their bin, because differences of closed-form
/// partial moments would cancel by the bin width, and the system amplifies that by the square of the number of levels.
/// Accuracy: 1e-15 absolute where long double has 64 bits of mantissa. Cost: under 0.1 ms (1 bit) to about 3 ms (8
/// bits) for the first call; later calls use a cache. Both throw usage_error for bits outside 1..8 and for dimension
/// < 1.

/// The optimal codebook for the standard normal law.
[[nodiscard]] Codebook lloyd_max_normal(int bits);

/// For sqrt(dimension) times a coordinate of a uniform point of the unit sphere of R^dimension: density proportional
/// to (1 - x^2/dimension)^((dimension-3)/2). dimension = 1 is the law of a sign: 1 bit is exact (distortion 0), and
/// more bits are rejected because they have no optimal levels. dimension = 2 is the arcsine law, 3 the uniform law.
[[nodiscard]] Codebook lloyd_max_sphere(int dimension, int bits);

}  // namespace spiked::theory
