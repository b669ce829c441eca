#include "estimators/inference/estimated_noise.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "theory/laws/finite_size.hpp"
#include "theory/laws/spectrum.hpp"
#include "theory/laws/white_formulas.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t fewest_noise_values = 8;

EstimatedNoise white_noise_of(double level, Shape shape) {
    const double long_side = static_cast<double>(shape.long_side());
    const double aspect = static_cast<double>(shape.short_side()) / long_side;
    const double unit = level * level * long_side;
    EstimatedNoise noise;
    const theory::Spectrum law = theory::wishart_spectrum(AspectRatio(aspect), shape.short_side());
    for (const theory::Atom& atom : law.atoms()) noise.eigenvalues.push_back(atom.value * unit);
    noise.edge = {unit * theory::white::bulk_edge(aspect)};
    noise.width = unit / (theory::white::tracy_widom_scale(aspect) * std::pow(long_side, 2.0 / 3.0));
    return noise;
}

}  // namespace

std::optional<EstimatedNoise> estimated_noise(const Shrinkage& found, Shape shape) {
    if (shape.short_side() < fewest_noise_values) return std::nullopt;
    if (found.noise_level && *found.noise_level > 0.0) return white_noise_of(*found.noise_level, shape);
    const std::vector<double>& values = found.noise_eigenvalues;
    if (values.size() < fewest_noise_values || !(values.front() > 0.0)) return std::nullopt;
    EstimatedNoise noise{.eigenvalues = values, .edge = {values.front()}};
    const std::size_t k = theory::pilot_within(theory::pilot_count(shape.short_side()), values.size());
    const double fall = (values.front() - values[k]) / std::pow(static_cast<double>(k), 2.0 / 3.0);
    noise.width = fall / std::pow(1.5 * std::numbers::pi, 2.0 / 3.0);
    if (!(noise.width > 0.0)) return std::nullopt;
    return noise;
}

std::string why_no_noise(const Shrinkage& found, Shape shape) {
    const bool white = found.noise_level.has_value();
    if (!white && found.noise_eigenvalues.empty() && shape.short_side() >= fewest_noise_values)
        return "this method estimates no noise law here";
    const std::size_t left =
        white || found.noise_eigenvalues.empty() ? shape.short_side() : found.noise_eigenvalues.size();
    if (left < fewest_noise_values)
        return fmt::format("the noise has only {} singular values ({} are needed)", left, fewest_noise_values);
    if (white ? *found.noise_level == 0.0 : !(found.noise_eigenvalues.front() > 0.0)) return "the noise is zero";
    return "the largest noise values are alike, which shows no edge";
}

theory::SpikeCurve curve_at(const EstimatedNoise& noise, Shape shape, Eigenvalue z) {
    double q = 0.0, s2 = 0.0, s3 = 0.0, s4 = 0.0;
    for (const double mu : noise.eigenvalues) {
        const double y = mu / (z.value - mu);
        q += y;
        s2 += y * y;
        s3 += y * y * y;
        s4 += y * y * y * y;
    }
    const double count = static_cast<double>(noise.eigenvalues.size());
    q /= count, s2 /= count, s3 /= count, s4 /= count;
    // Derivatives with respect to log z, where y' = -y (1 + y); the ratio is p - 1, p = 1/F.
    const double ratio = s2 / q;
    const double dq = -(q + s2);
    const double ds2 = -2.0 * (s2 + s3);
    const double ddq = q + 3.0 * s2 + 2.0 * s3;
    const double dds2 = 4.0 * s2 + 10.0 * s3 + 6.0 * s4;
    const double dp = (ds2 - ratio * dq) / q;
    const double ddp = (dds2 - 2.0 * dp * dq - ratio * ddq) / q;
    const double p = 1.0 + ratio;
    theory::SpikeCurve curve;
    const bool short_is_right = shape.columns <= shape.rows;
    const double aspect = static_cast<double>(shape.short_side()) / static_cast<double>(shape.long_side());
    curve.t = short_is_right ? q : aspect * q;
    curve.z = z.value;
    curve.fall = 1.0 / p;
    curve.one_minus_fall = ratio / p;
    curve.slope = -dp / (p * p * p);
    curve.slope_derivative = (ddp / (p * p * p) - 3.0 * dp * dp / (p * p * p * p)) / p;
    return curve;
}

CurveEstimate estimate_on(const theory::SpikeCurve& curve, Shape shape) {
    const double right = curve.t;
    const double left = curve.t * static_cast<double>(shape.columns) / static_cast<double>(shape.rows);
    const double fall_of_transform = 1.0 + (left / (1.0 + left) + right / (1.0 + right)) / curve.fall;
    return {std::sqrt(curve.z / ((1.0 + left) * (1.0 + right))), (1.0 + left) / fall_of_transform,
            (1.0 + right) / fall_of_transform};
}

}  // namespace spiked::estimators
