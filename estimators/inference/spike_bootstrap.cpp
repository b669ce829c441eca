#include "estimators/inference/spike_bootstrap.hpp"

#include <cmath>
#include <numeric>
#include <span>

#include "core/runtime/stop_point.hpp"
#include "sim/random/normal.hpp"
#include "theory/laws/root.hpp"

namespace spiked::estimators {
namespace {

/// One block: noise on the diagonal, and the spike's unit vectors of the short and the long side in these coordinates.
struct DiagonalBlock {
    std::span<const double> mu;
    std::span<const double> roots;  ///< of mu
    std::span<const double> u;      ///< of the short side
    std::span<const double> v;      ///< of the long side, as many as mu
    double rest = 0.0;              ///< the square length of the other entries of v
    double strength = 0.0;

    struct Sums {
        double a = 0.0, b = 0.0, c = 0.0;
    };
    [[nodiscard]] Sums at(double z) const {
        Sums sums;
        for (std::size_t i = 0; i < mu.size(); ++i) {
            const double term = 1.0 / (z - mu[i]);
            sums.a += u[i] * u[i] * term;
            sums.b += v[i] * v[i] * term;
            sums.c += u[i] * v[i] * roots[i] * term;
        }
        sums.b += rest / z;
        return sums;
    }
    /// Falls from infinity, above the largest mu, to -1; zero at the outlier.
    [[nodiscard]] double secular(double z) const {
        const Sums sums = at(z);
        return strength * (std::sqrt(z * sums.a * sums.b) + sums.c) - 1.0;
    }
    [[nodiscard]] BootstrapDraw top(Shape shape) const {
        const double low = mu.front() * (1.0 + 1e-9);
        const double reach = roots.front() + strength;
        BootstrapDraw draw;
        draw.outlier = {mu.front()};
        if (!(secular(low) > 0.0)) return draw;
        const double z = theory::bracketed_root([&](double x) { return secular(x); }, low, reach * reach * (1.0 + 1e-9),
                                                theory::within(1e-12));
        const Sums sums = at(z);
        const double s = std::sqrt(z);
        const double g = (1.0 - strength * sums.c) / (strength * s * sums.a);  // v'v^ / u'u^
        double left = 0.0;
        double right = rest / z;
        for (std::size_t i = 0; i < mu.size(); ++i) {
            const double term = 1.0 / (z - mu[i]);
            const double x = (s * u[i] * g + roots[i] * v[i]) * term;
            const double y = (roots[i] * u[i] * g + s * v[i]) * term;
            left += x * x;
            right += y * y;
        }
        // The vectors have inner products 1 and g with u and v, and these square lengths times strength^2.
        const double scale = strength * strength;
        const double of_short = 1.0 / (scale * left);
        const double of_long = g * g / (scale * right);
        draw.outlier = {z};
        const bool left_is_short = shape.rows <= shape.columns;
        draw.overlap_left = left_is_short ? of_short : of_long;
        draw.overlap_right = left_is_short ? of_long : of_short;
        return draw;
    }
};

double normalise(std::span<double> vector) {
    const double length = std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
    for (double& x : vector) x /= length;
    return length;
}

}  // namespace

std::vector<BootstrapDraw> bootstrap_spike(const EstimatedNoise& noise, Shape shape, double strength, std::size_t count,
                                           const stream::Stream& stream) {
    const std::size_t p = noise.eigenvalues.size();
    // The long side loses as many dimensions to the signal as the short side.
    const std::size_t q = std::max(p, shape.long_side() - (shape.short_side() - p));
    std::vector<double> roots(p);
    for (std::size_t i = 0; i < p; ++i) roots[i] = std::sqrt(noise.eigenvalues[i]);
    std::vector<double> normals(p + q);
    std::vector<BootstrapDraw> draws;
    draws.reserve(count);
    for (std::size_t k = 0; k < count; ++k) {
        stop_point();
        stream::fill_normal(stream, k * (p + q), normals);
        const std::span<double> u = std::span(normals).first(p);
        const std::span<double> v = std::span(normals).subspan(p);
        normalise(u);
        normalise(v);
        const std::span<const double> other = v.subspan(p);
        const DiagonalBlock block{
            noise.eigenvalues, roots, u, v.first(p), std::inner_product(other.begin(), other.end(), other.begin(), 0.0),
            strength};
        draws.push_back(block.top(shape));
    }
    return draws;
}

}  // namespace spiked::estimators
