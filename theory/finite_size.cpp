#include "theory/finite_size.hpp"

#include <algorithm>
#include <array>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "theory/marchenko_pastur.hpp"
#include "theory/tracy_widom.hpp"

namespace spiked::theory {
namespace {

void require_size(const SeparableLaw& law, std::size_t rows, std::size_t columns) {
    if (rows == 0 || columns == 0)
        throw usage_error("size {}x{} is not usable (a matrix has rows and columns): give NxD", rows, columns);
    const double aspect = AspectRatio::of(rows, columns).value();
    if (std::abs(aspect - law.aspect().value()) > 1e-9 * law.aspect().value())
        throw usage_error(
            "size {}x{} does not fit the law (rows over columns is {}, the aspect ratio {}): change one "
            "of them",
            rows, columns, aspect, law.aspect().value());
}

/// Pure noise of one size: where its eigenvalues typically are, and how many lie above a level.
class Noise {
public:
    Noise(const SeparableLaw& law, std::size_t rows, std::size_t columns)
        : bulk_(law),
          edge_(law.bulk_edge().value),
          unit_(1.0 / (law.tracy_widom_scale() * std::pow(static_cast<double>(columns), 2.0 / 3.0))),
          rows_(static_cast<double>(rows)),
          columns_(static_cast<double>(columns)) {}

    [[nodiscard]] double edge() const { return edge_; }
    [[nodiscard]] double unit() const { return unit_; }

    /// The typical position of the j-th largest eigenvalue. The limiting process of real noise holds a quarter point
    /// more above a level deep in the bulk than the density says, and the j-th point lies where j - 1/2 are above.
    [[nodiscard]] double position(std::size_t j) const {
        const double above = (static_cast<double>(j) - 0.75) / rows_;
        return bulk_.quantile(std::max(0.0, 1.0 - above)).value;
    }

    [[nodiscard]] double expected_above(double level) const {
        const double s = (level - edge_) / unit_;
        if (s >= 0.0) return edge_points_above(s);
        const double counted = rows_ * bulk_.survival({level});
        constexpr double far = -8.0;
        if (s < far) return counted + 0.25;
        return counted + edge_points_above(s) - 2.0 / (3.0 * std::numbers::pi) * std::pow(-s, 1.5);
    }

    /// Median of the min(n, d) eigenvalues that a decomposition returns.
    [[nodiscard]] double median() const {
        const double share = std::min(1.0, columns_ / rows_);
        return bulk_.quantile(1.0 - 0.5 * share).value;
    }

private:
    BulkDistribution bulk_;
    double edge_;
    double unit_;
    double rows_;
    double columns_;
};

/// The eigenvalue z at which the shrunk value is half the observed one: K(z) = -z T'/T = 2.
double half_shrinkage(const SeparableLaw& law) {
    const double edge = law.bulk_edge().value;
    const auto excess = [&](double z) { return -z * law.d_transform_derivative({z}) / law.d_transform({z}) - 2.0; };
    double high = 2.0 * edge;
    while (excess(high) > 0.0) high *= 2.0;
    std::uintmax_t evaluations = 100;
    const auto ends = boost::math::tools::toms748_solve(
        [&](double z) { return z <= edge ? 1.0 : excess(z); }, edge, high,
        [](double a, double b) { return std::abs(b - a) <= 1e-12 * std::abs(b); }, evaluations);
    return 0.5 * (ends.first + ends.second);
}

/// Gavish and Donoho's hard threshold squared, for noise of variance 1/(long side).
double gavish_donoho(double aspect) {
    const double beta = std::min(aspect, 1.0 / aspect);
    return 2.0 * (beta + 1.0) + 8.0 * beta / (beta + 1.0 + std::sqrt(beta * beta + 14.0 * beta + 1.0));
}

}  // namespace

std::size_t pilot_count(std::size_t side) {
    if (side < 3) return 0;
    const double p = static_cast<double>(side);
    const double log_log = std::log(std::log(p));
    const double exponent = log_log > 2.01 ? 1.0 / log_log : 1.0 / 2.01;
    return static_cast<std::size_t>(std::floor(std::pow(p, exponent)));
}

FiniteSize finite_size(const SeparableLaw& law, std::size_t rows, std::size_t columns,
                       std::span<const SignalStrength> strengths, double level) {
    require_size(law, rows, columns);
    const double upper_quantile = tracy_widom_upper_quantile(level);
    const std::size_t short_side = std::min(rows, columns);
    const double p = static_cast<double>(short_side);
    const Noise noise(law, rows, columns);
    const double edge = noise.edge();

    FiniteSize result;
    result.rows = rows;
    result.columns = columns;
    result.top_noise_shift = tracy_widom_mean * noise.unit();
    result.top_noise_standard_deviation = std::sqrt(tracy_widom_variance) * noise.unit();
    result.regularity = law.edge_regularity(3.0 / p);

    const auto smallest_strength = [&](double cutoff) {
        // Below the edge the limit has no outlier to show, whatever the rule counts.
        return cutoff > edge ? law.strength_of({cutoff}) : law.detection_threshold();
    };
    const auto add = [&](std::string name, double cutoff) -> RankRule& {
        RankRule rule;
        rule.name = std::move(name);
        rule.cutoff = {cutoff};
        rule.smallest_strength = smallest_strength(cutoff);
        rule.false_alarm_probability = tracy_widom_survival((cutoff - edge) / noise.unit());
        rule.expected_false_alarms = noise.expected_above(cutoff);
        result.rules.push_back(std::move(rule));
        return result.rules.back();
    };
    // The edge estimate under `spikes` spikes, which move noise eigenvalues down the list; power 2 squares them first.
    const auto estimate = [&](std::size_t k, double factor, int power, std::size_t spikes) -> std::optional<double> {
        if (k == 0 || 2 * k + 1 > short_side) return std::nullopt;
        const double upper = std::pow(noise.position(k + 1 - spikes), power);
        const double lower = std::pow(noise.position(2 * k + 1 - spikes), power);
        return std::pow(upper + factor * edge_extrapolation * (upper - lower), 1.0 / power);
    };
    const auto add_estimating = [&](const char* name, std::size_t k, double factor, int power, double margin) {
        const double beyond = std::pow(1.0 + margin, 1.0 / power);
        RankRule& rule = add(name, edge * beyond);
        const auto pure = estimate(k, factor, power, 0);
        if (!pure) return;
        const double with_spike = *estimate(k, factor, power, 1) * beyond;
        rule.estimated = {{*pure * beyond}, smallest_strength(with_spike), noise.expected_above(*pure * beyond)};
    };
    const std::size_t k = pilot_count(short_side);
    const double margin = 1.0 / std::cbrt(p);
    if (const auto edge_estimate = estimate(k, 1.0, 1, 0)) result.edge_estimate = Eigenvalue{*edge_estimate};
    add_estimating("eoptshrink", k, 1.0, 1, margin);
    add_estimating("eoptshrink:margin=0", k, 1.0, 1, 0.0);
    add_estimating("eoptshrink:paper", pilot_count(columns), 1.0, 2, 1.0 / std::cbrt(static_cast<double>(columns)));
    add_estimating("eoptshrink:author", k, 1.1, 1, 0.0);
    add(fmt::format("tw-test:level={:g}", level), edge + upper_quantile * noise.unit());
    const double beta = std::min(law.aspect().value(), 1.0 / law.aspect().value());
    const double noise_level = noise.median() / MarchenkoPastur(AspectRatio(beta)).median().value;
    add("gd-hard", noise_level * gavish_donoho(beta));
    add("gd-shrink", noise_level * std::pow(1.0 + std::sqrt(beta), 2));
    add("screenot", half_shrinkage(law));

    for (const SignalStrength strength : strengths)
        if (strength > law.detection_threshold())
            result.spikes.push_back(spike_fluctuation(law, strength, rows, columns));
    return result;
}

// Conditionally on Z, the bilinear forms of Haar u, v in the resolvent R = (Z Z^T - z)^(-1) and its companion,
//   e1 = u' R u - m1,   e2 = v' R~ v - m2,   e3 = u' Z R~ v,
// are independent to first order, with variances (2/n)(m1' - m1^2), (2/d)(m2' - m2^2) and (1/d)(m1 + z m1'). The u u'
// entry of the spiked resolvent is (m1 + e1) / G, G(z) = (1 + D e3)^2 - D^2 z (m1 + e1)(m2 + e2), D the strength: its
// pole is the outlier, its residue the overlap, and both are linearised here.
SpikeFluctuation spike_fluctuation(const SeparableLaw& law, SignalStrength strength, std::size_t rows,
                                   std::size_t columns) {
    require_size(law, rows, columns);
    const double threshold = law.detection_threshold().value;
    if (!(strength.value > threshold))
        throw usage_error("strength {} has no fluctuation (it is not above the threshold {}): give a larger one",
                          strength.value, threshold);
    const SpikePrediction spike = law.spike(strength);
    const double z = spike.outlier.value;
    const double D = strength.value;
    const double n = static_cast<double>(rows);
    const double d = static_cast<double>(columns);

    // Moments int 1/(x - z)^j, j = 1..4, of each side; the last two from differences of the second.
    struct Moments {
        std::array<double, 5> of{};  // of[0] = 1
    };
    // Seven points, an error near 1e-8: for strong spikes the variances below are small differences of moments.
    const double step = 0.02 * (z - law.bulk_edge().value);
    const auto moments = [&](double first, auto second) {
        std::array<double, 7> at{};
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = second(z + (static_cast<double>(i) - 3.0) * step);
        const double slope = (45.0 * (at[4] - at[2]) - 9.0 * (at[5] - at[1]) + (at[6] - at[0])) / (60.0 * step);
        const double curvature =
            (2.0 * (at[6] + at[0]) - 27.0 * (at[5] + at[1]) + 270.0 * (at[4] + at[2]) - 490.0 * at[3]) /
            (180.0 * step * step);
        return Moments{{1.0, first, at[3], slope / 2.0, curvature / 6.0}};
    };
    const Moments left = moments(spike.stieltjes_left, [&](double x) { return law.stieltjes_left_derivative({x}); });
    const Moments right = moments(spike.stieltjes_right, [&](double x) { return law.stieltjes_right_derivative({x}); });

    // Everything below is a linear form in (e1, e1', e2, e2', e3, e3'), primes with respect to z.
    using Form = std::array<double, 6>;
    const auto combine = [](double a, const Form& x, double b, const Form& y) {
        Form sum{};
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a * x[i] + b * y[i];
        return sum;
    };
    const double m1 = left.of[1];
    const double m2 = right.of[1];
    const double dm1 = left.of[2];
    const double dm2 = right.of[2];
    const double ddm1 = 2.0 * left.of[3];
    const double ddm2 = 2.0 * right.of[3];
    const double dT = m1 * m2 + z * (dm1 * m2 + m1 * dm2);
    const double ddT = 2.0 * (dm1 * m2 + m1 * dm2) + z * (ddm1 * m2 + 2.0 * dm1 * dm2 + m1 * ddm2);
    // The pole of G(z) = (1 + D e3)^2 - D^2 z (m1 + e1)(m2 + e2): dG + G' dz = 0.
    const Form change{-D * D * z * m2, 0.0, -D * D * z * m1, 0.0, 2.0 * D, 0.0};
    const double slope = -D * D * dT;
    const Form shift = combine(-1.0 / slope, change, 0.0, change);
    // dG' along e and along the shift of the pole.
    Form slope_change{-D * D * (m2 + z * dm2), -D * D * z * m2, -D * D * (m1 + z * dm1), -D * D * z * m1, 0.0, 2.0 * D};
    slope_change = combine(1.0, slope_change, -D * D * ddT, shift);
    // overlap = -(m + e) / G' with the factors w cancelling: dlog overlap = d(m + e)/m - dG'/G'.
    const auto overlap = [&](double m, double dm, std::size_t which) {
        Form form = combine(-1.0 / slope, slope_change, dm / m, shift);
        form[which] += 1.0 / m;
        return form;
    };
    const auto deviation = [&](const Form& form) {
        const auto quadratic = [&](const Moments& moment, double size, double a, double b) {
            // e = int over eigenvalues of a/(x - z) + b/(x - z)^2 against squared coordinates of a Haar vector.
            const double mean = a * moment.of[1] + b * moment.of[2];
            const double square = a * a * moment.of[2] + 2.0 * a * b * moment.of[3] + b * b * moment.of[4];
            return 2.0 / size * (square - mean * mean);
        };
        // e3: x (a/(x - z) + b/(x - z)^2)^2 summed over the eigenvalues, times 1/n 1/d each.
        const double a = form[4];
        const double b = form[5];
        const auto weighted = [&](std::size_t j) { return left.of[j - 1] + z * left.of[j]; };  // int x/(x - z)^j
        const double cross = (a * a * weighted(2) + 2.0 * a * b * weighted(3) + b * b * weighted(4)) / d;
        return std::sqrt(quadratic(left, n, form[0], form[1]) + quadratic(right, d, form[2], form[3]) + cross);
    };
    SpikeFluctuation result;
    result.strength = strength;
    result.outlier = deviation(shift);
    result.overlap_left = spike.overlap_left.value * deviation(overlap(m1, dm1, 0));
    result.overlap_right = spike.overlap_right.value * deviation(overlap(m2, dm2, 2));
    result.reliable = D >= threshold * (1.0 + 1.0 / std::cbrt(d));
    return result;
}

}  // namespace spiked::theory
