#include "estimators/ranks/rate_distortion_rank.hpp"

#include <cmath>
#include <numeric>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {

std::size_t rate_distortion_rank(const RelativeSpectrum& spectrum, unsigned entry_bits) {
    constexpr double value_bits = 16.0;
    const double n = static_cast<double>(spectrum.shape.rows);
    const double d = static_cast<double>(spectrum.shape.columns);
    const double cost = ((n + d) * entry_bits + value_bits) / (n * d);
    // With 16 bits the loss is negligible.
    const double distortion = entry_bits > 8 ? 0.0 : theory::lloyd_max_normal(static_cast<int>(entry_bits)).distortion;
    const double lost = 1.0 - (1.0 - distortion) * (1.0 - distortion);
    const double whole = std::accumulate(spectrum.eigenvalues.begin(), spectrum.eigenvalues.end(), 0.0);
    std::size_t best = 0;
    double least = 0.0;
    double removed = 0.0;
    for (std::size_t r = 1; r <= spectrum.above_rounding; ++r) {
        removed += spectrum.eigenvalues[r - 1];
        const double left = std::max(whole - removed, 0.0) + lost * removed;
        // The bound at 2^-40 is for blocks that are exactly of this rank, whose remainder is rounding error.
        const double bits = static_cast<double>(r) * cost + 0.5 * std::log2(std::max(left / whole, 0x1p-40));
        if (bits >= least) continue;
        least = bits;
        best = r;
    }
    return best;
}

}  // namespace spiked::estimators
