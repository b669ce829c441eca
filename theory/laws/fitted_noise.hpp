#pragma once
#include <optional>
#include <vector>

#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::theory {

/// Eigenvalues below this share of the largest count as zero.
constexpr double zero_fraction = 1e-10;

/// Noise of two parameters fitted to eigenvalues: variances exp(-decay (j - 1/2) / q) times a scale on one side, of
/// size q, white on the other. On a square block the spectrum does not tell which side the decay is on.
struct FittedNoise {
    double decay = 0.0;
    bool on_long_side = true;      ///< where the decay is
    double distance = 0.0;         ///< Kolmogorov's, between the eigenvalues and the law
    std::size_t count = 0;         ///< eigenvalues fitted: zeros are left out
    std::vector<BulkPoint> curve;  ///< density and distribution function from edge to edge
    bool at_limit = false;         ///< the decay is the largest that is tried: there may be a faster one
};

/// The side, and the decay up to 12, of least Kolmogorov distance; the scale makes the means agree. `eigenvalues` are
/// those of the noise in any order, `long_side` the larger size of the block less what was taken for signal; it is at
/// least the count. Nothing with fewer than 8 eigenvalues above zero. Accuracy: the decay to 0.05, the distance to
/// 1e-3. Cost: at most 68 curves of 200 points, 50 ms.
[[nodiscard]] std::optional<FittedNoise> fit_noise(std::vector<double> eigenvalues, std::size_t long_side);

/// What the distance of a spectrum of that many eigenvalues from its own law rarely (1 in 20) exceeds: 3 / count.
/// Eigenvalues repel each other, so that it falls like log(count) / count and hardly depends on the law: measured for
/// 32 to 256 eigenvalues, white and decaying noise, 2.7 to 3.2. Less for a law with fitted parameters.
[[nodiscard]] double chance_distance(std::size_t count);

}  // namespace spiked::theory
