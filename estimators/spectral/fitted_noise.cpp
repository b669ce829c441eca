#include "estimators/spectral/fitted_noise.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "theory/laws/spectrum.hpp"

namespace spiked::estimators {
namespace {

FittedNoise with_decay(const std::vector<double>& eigenvalues, double mean, AspectRatio aspect, double decay,
                       bool on_long_side) {
    constexpr std::size_t atoms = 64;
    constexpr std::size_t points = 200;
    const theory::Spectrum decaying =
        decay > 0.0 ? theory::exponential_spectrum(decay, atoms) : theory::identity_spectrum();
    const theory::BulkDistribution bulk(on_long_side
                                            ? theory::SeparableLaw(theory::identity_spectrum(), decaying, aspect)
                                            : theory::SeparableLaw(decaying, theory::identity_spectrum(), aspect));
    FittedNoise fitted{decay, on_long_side, 0.0, eigenvalues.size(), bulk.curve(points)};
    const double scale = mean / bulk.mean();
    for (auto& point : fitted.curve) {
        point.x.value *= scale;
        point.density /= scale;
    }
    const auto count = static_cast<double>(eigenvalues.size());
    std::size_t right = 0;
    for (std::size_t i = 0; i < eigenvalues.size(); ++i) {
        const double x = eigenvalues[i];
        while (right < points && fitted.curve[right].x.value < x) ++right;
        double cdf = right == points ? 1.0 : fitted.curve[right].cdf;
        if (right > 0 && right < points) {
            const auto& a = fitted.curve[right - 1];
            const auto& b = fitted.curve[right];
            cdf = a.cdf + (b.cdf - a.cdf) * (x - a.x.value) / (b.x.value - a.x.value);
        } else if (right == 0) {
            cdf *= x / fitted.curve.front().x.value;  // the curve begins just above a lower edge of zero
        }
        const auto below = static_cast<double>(i);
        fitted.distance = std::max({fitted.distance, cdf - below / count, (below + 1.0) / count - cdf});
    }
    return fitted;
}

}  // namespace

std::optional<FittedNoise> fit_noise(std::vector<double> eigenvalues, std::size_t long_side) {
    constexpr std::size_t fewest = 8;
    constexpr double largest_decay = 12.0;
    constexpr double zero_fraction = 1e-10;
    std::sort(eigenvalues.begin(), eigenvalues.end());
    if (eigenvalues.empty()) return std::nullopt;
    const double zero = zero_fraction * eigenvalues.back();
    eigenvalues.erase(eigenvalues.begin(), std::upper_bound(eigenvalues.begin(), eigenvalues.end(), zero));
    if (eigenvalues.size() < fewest || !std::isfinite(eigenvalues.back())) return std::nullopt;
    const double mean =
        std::accumulate(eigenvalues.begin(), eigenvalues.end(), 0.0) / static_cast<double>(eigenvalues.size());
    const AspectRatio aspect{static_cast<double>(eigenvalues.size()) /
                             static_cast<double>(std::max(long_side, eigenvalues.size()))};
    FittedNoise best = with_decay(eigenvalues, mean, aspect, 0.0, true);
    const auto search = [&](double from, double to, double step, bool on_long_side) {
        for (double decay = from; decay < to + 0.5 * step; decay += step)
            if (FittedNoise fitted = with_decay(eigenvalues, mean, aspect, decay, on_long_side);
                fitted.distance < best.distance)
                best = std::move(fitted);
    };
    search(0.5, largest_decay, 0.5, true);
    if (aspect.value() < 1.0) search(0.5, largest_decay, 0.5, false);
    const double coarse = best.decay;
    const bool on_long_side = best.on_long_side;
    search(std::max(0.05, coarse - 0.45), std::min(largest_decay, coarse + 0.45), 0.05, on_long_side);
    best.at_limit = best.decay >= largest_decay - 0.05;
    best.zero = zero;
    best.chance_distance = 3.0 / static_cast<double>(best.count);
    return best;
}

}  // namespace spiked::estimators
