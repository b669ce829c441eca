#pragma once
#include <optional>
#include <vector>

#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::estimators {

/// A two-parameter noise model fitted to eigenvalues: variances exp(-decay (j - 1/2) / q) times a scale on one side, of
/// size q, and white noise on the other. On a square block the spectrum does not determine the side of the decay.
struct FittedNoise {
    double decay = 0.0;
    bool on_long_side = true;              ///< the side of the decay
    double distance = 0.0;                 ///< Kolmogorov distance between the eigenvalues and the law
    std::size_t count = 0;                 ///< number of fitted eigenvalues; zeros are left out
    std::vector<theory::BulkPoint> curve;  ///< density and distribution function from edge to edge
    bool at_limit = false;                 ///< the decay is the largest that is tried; the best one may be larger
    double zero = 0.0;                     ///< eigenvalues up to this one, 1e-10 of the largest, count as zero
    /// The distance that a spectrum of `count` eigenvalues exceeds from its own law in 1 of 20 cases, 3 / count.
    /// Eigenvalues repel each other, so this distance falls like log(count) / count and hardly depends on the law:
    /// count times the distance is 2.7 to 3.2, measured for 32 to 256 eigenvalues of white and decaying noise. It is
    /// smaller for a law with fitted parameters.
    double chance_distance = 0.0;
};

/// The side and the decay, up to 12, of least Kolmogorov distance; the scale makes the means agree. `eigenvalues` are
/// those of the noise in any order. `long_side` is the larger size of the block minus the rank of the signal, at least
/// the number of eigenvalues. Returns nothing for fewer than 8 eigenvalues above zero. Accuracy: the decay to 0.05, the
/// distance to 1e-3. Cost: at most 68 curves of 200 points, 50 ms.
[[nodiscard]] std::optional<FittedNoise> fit_noise(std::vector<double> eigenvalues, std::size_t long_side);

}  // namespace spiked::estimators
