#include "estimators/ranks/kritchman_nadler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/runtime/memo.hpp"
#include "theory/laws/tracy_widom.hpp"

namespace spiked::estimators {
namespace {

constexpr int variance_rounds = 30;
constexpr double variance_tolerance = 1e-5;

/// An upper quantile of Tracy-Widom 1, and the derivative of the logarithm of its density there.
struct UpperQuantile {
    double value = 0.0;
    double log_density_slope = 0.0;
};

UpperQuantile tracy_widom_at(double level) {
    static Memo<double, UpperQuantile> quantiles;
    return quantiles.of(level, [&] {
        constexpr double step = 0.01;
        const double s = theory::tracy_widom_upper_quantile(level);
        const double below = theory::tracy_widom_survival(s - step);
        const double above = theory::tracy_widom_survival(s + step);
        return UpperQuantile{s, 2.0 / step * (below - 2.0 * theory::tracy_widom_survival(s) + above) / (above - below)};
    });
}

/// The upper quantile of the largest eigenvalue of white noise with these sides, over the mean square of its entries.
double largest_over_mean(std::size_t long_side, std::size_t short_side, const UpperQuantile& quantile) {
    const double n = static_cast<double>(long_side);
    const double m = static_cast<double>(short_side);
    const double sides = std::sqrt(n - 0.5) + std::sqrt(m - 0.5);
    const double mu = sides * sides;
    const double sigma = sides * std::cbrt(1.0 / std::sqrt(n - 0.5) + 1.0 / std::sqrt(m - 0.5));
    return mu + sigma * quantile.value + mu * mu / (n * m * sigma) * quantile.log_density_slope;
}

}  // namespace

double kritchman_nadler_variance(std::span<const double> eigenvalues, std::size_t long_side, std::size_t rank) {
    const double n = static_cast<double>(long_side);
    const double m = static_cast<double>(eigenvalues.size() - rank);
    const std::span<const double> components = eigenvalues.first(rank);
    const std::span<const double> others = eigenvalues.subspan(rank);
    const double rest = std::accumulate(others.begin(), others.end(), 0.0);
    double variance = rest / m / (1.0 - static_cast<double>(rank) / n);
    for (int round = 0; round < variance_rounds; ++round) {
        double noise_in_components = 0.0;
        for (const double l : components) {
            const double sum = l + variance * (1.0 - m / n);
            const double discriminant = sum * sum - 4.0 * l * variance;
            if (discriminant < 0.0) return variance;
            noise_in_components += std::max(0.0, l - 0.5 * (sum + std::sqrt(discriminant)));
        }
        const double next = (rest + noise_in_components) / m;
        if (std::abs(next - variance) < variance_tolerance * variance) return variance;
        variance = next;
    }
    return variance;
}

std::size_t kritchman_nadler_rank(const RelativeSpectrum& spectrum, double level) {
    // Data that are centred, or have a column twice, have few values of 0, and the others are noise of p dimensions;
    // data with many are of low rank without noise.
    const std::size_t p = spectrum.above_rounding;
    if (2 * p <= spectrum.shape.short_side()) return p;
    const std::size_t long_side = spectrum.shape.long_side();
    const double n = static_cast<double>(long_side);
    const UpperQuantile quantile = tracy_widom_at(level);
    std::vector<double> eigenvalues = spectrum.eigenvalues;
    eigenvalues.resize(p);
    for (double& l : eigenvalues) l /= n;
    std::size_t rank = 0;
    for (; rank + 1 < p; ++rank) {
        const double variance = kritchman_nadler_variance(eigenvalues, long_side, rank);
        if (!(eigenvalues[rank] > variance / n * largest_over_mean(long_side - rank, p - rank, quantile))) break;
    }
    return rank;
}

}  // namespace spiked::estimators
