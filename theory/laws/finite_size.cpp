#include "theory/laws/finite_size.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "theory/laws/line_fit.hpp"
#include "theory/laws/marchenko_pastur.hpp"
#include "theory/laws/root.hpp"
#include "theory/laws/tracy_widom.hpp"
#include "theory/laws/white_formulas.hpp"

namespace spiked::theory {
namespace {

void require_size(const SeparableLaw& law, std::size_t rows, std::size_t columns) {
    if (rows == 0 || columns == 0)
        throw usage_error("size {}x{} is not usable (a matrix has rows and columns): give NxD", rows, columns);
    const double aspect = AspectRatio::of(rows, columns).value();
    if (std::abs(aspect - law.aspect().value()) > 1e-9 * law.aspect().value())
        throw usage_error(
            "size {}x{} does not fit the law (rows over columns is {}, the aspect ratio {}): change one of them", rows,
            columns, aspect, law.aspect().value());
}

void require_known(const NoiseEntries& entries) {
    if (entries.field == Field::complex && entries.excess_kurtosis != 0.0)
        throw usage_error(
            "complex entries of excess kurtosis {:g} are given (at one size only Gaussian ones are known): leave the "
            "kurtosis out",
            entries.excess_kurtosis);
}

/// Pure noise of one size: the typical positions of its eigenvalues, and the expected number above a level.
class Noise {
public:
    /// The kurtosis of `entries` moves the eigenvalues, not the edge that a rule knows.
    Noise(const SeparableLaw& law, std::size_t rows, std::size_t columns, const NoiseEntries& entries)
        : bulk_(law),
          edge_(law.bulk_edge().value),
          edge_shift_(kurtosis_edge_shift(law, columns, entries)),
          shift_at_([&law, columns, entries](double at) { return kurtosis_shift_at(law, columns, entries, {at}); }),
          edge_scale_(1.0 / (law.tracy_widom_scale() * std::pow(static_cast<double>(columns), 2.0 / 3.0))),
          field_(entries.field),
          more_above_(field_ == Field::real ? 0.25 : 0.0),
          rows_(static_cast<double>(rows)),
          columns_(static_cast<double>(columns)) {}

    [[nodiscard]] double edge() const { return edge_; }
    [[nodiscard]] double edge_scale() const { return edge_scale_; }

    /// The typical position of the j-th largest eigenvalue, where j - 1/2 points of the limiting process are above.
    [[nodiscard]] double position(std::size_t j) const {
        const double above = (static_cast<double>(j) - 0.5 - more_above_) / rows_;
        const double place = bulk_.quantile(std::max(0.0, 1.0 - above)).value;
        return place + shift_at_(place);
    }

    [[nodiscard]] double probability_above(double level) const {
        return tracy_widom_survival((level - edge_shift_ - edge_) / edge_scale_, field_);
    }

    [[nodiscard]] double expected_above(double level) const {
        const double unshifted = level - shift_at_(level - edge_shift_);
        const double s = (unshifted - edge_) / edge_scale_;
        if (s >= 0.0) return edge_points_above(s, field_);
        const double counted = rows_ * bulk_.survival({unshifted});
        constexpr double far = -8.0;
        if (s < far) return counted + more_above_;
        return counted + edge_points_above(s, field_) - 2.0 / (3.0 * std::numbers::pi) * std::pow(-s, 1.5);
    }

    /// The median of the min(n, d) eigenvalues that a decomposition returns.
    [[nodiscard]] double median() const {
        const double fraction = std::min(1.0, columns_ / rows_);
        return bulk_.quantile(1.0 - 0.5 * fraction).value;
    }

private:
    BulkDistribution bulk_;
    double edge_;
    double edge_shift_;
    std::function<double(double)> shift_at_;  ///< of the eigenvalue at a place of the limit
    double edge_scale_;
    Field field_;
    double more_above_;  ///< a level deep in the bulk than the density predicts, in the limiting process
    double rows_;
    double columns_;
};

/// Collects the cutoffs of rank rules under one law and noise.
class CutoffTable {
public:
    CutoffTable(const SeparableLaw& law, const Noise& noise) : law_(law), noise_(noise) {}

    RankCutoff& add(std::string name, double cutoff) {
        RankCutoff rule;
        rule.name = std::move(name);
        rule.cutoff = {cutoff};
        rule.smallest_strength = smallest_strength(cutoff);
        rule.false_alarm_probability = noise_.probability_above(cutoff);
        rule.expected_false_alarms = noise_.expected_above(cutoff);
        rules_.push_back(std::move(rule));
        return rules_.back();
    }
    /// The edge estimate with `spikes` spikes, which shift the noise eigenvalues in the list; power 2 squares them
    /// first. No value for k = 0.
    [[nodiscard]] std::optional<double> estimate(std::size_t k, double factor, int power, std::size_t spikes) const {
        if (k == 0) return std::nullopt;
        const double upper = std::pow(noise_.position(k + 1 - spikes), power);
        const double lower = std::pow(noise_.position(2 * k + 1 - spikes), power);
        return std::pow(upper + factor * edge_extrapolation * (upper - lower), 1.0 / power);
    }
    /// A rule that extrapolates the edge from two eigenvalues.
    void add_estimating(const char* name, std::size_t k, double factor, int power, double margin) {
        const double beyond = std::pow(1.0 + margin, 1.0 / power);
        RankCutoff& rule = add(name, noise_.edge() * beyond);
        const auto pure = estimate(k, factor, power, 0);
        if (!pure) return;
        const double with_spike = *estimate(k, factor, power, 1) * beyond;
        rule.estimated = {{*pure * beyond}, smallest_strength(with_spike), noise_.expected_above(*pure * beyond)};
    }
    /// A rule that fits a least-squares line to the top 2k typical positions; a spike is removed from the list before
    /// the fit.
    void add_edge_fit(const char* name, std::size_t k, double margin) {
        RankCutoff& rule = add(name, noise_.edge() * (1.0 + margin));
        if (k == 0) return;
        std::vector<double> x, y;
        for (std::size_t j = 1; j <= 2 * k; ++j) {
            x.push_back(std::pow(static_cast<double>(j) - 0.5, 2.0 / 3.0));
            y.push_back(noise_.position(j));
        }
        const double cutoff = fit_line(x, y).intercept() * (1.0 + margin);
        rule.estimated = {{cutoff}, smallest_strength(cutoff), noise_.expected_above(cutoff)};
    }
    [[nodiscard]] std::vector<RankCutoff> take() { return std::move(rules_); }

private:
    /// Below the edge the limit has no outlier, whatever the rule counts.
    [[nodiscard]] SignalStrength smallest_strength(double cutoff) const {
        return cutoff > noise_.edge() ? law_.strength_of({cutoff}) : law_.detection_threshold();
    }

    const SeparableLaw& law_;
    const Noise& noise_;
    std::vector<RankCutoff> rules_;
};

/// The eigenvalue z at which the shrunk value is half the observed one: K(z) = -z T'/T = 2.
double half_shrinkage(const SeparableLaw& law) {
    const double edge = law.bulk_edge().value;
    const auto excess = [&](double z) { return -z * law.d_transform_derivative({z}) / law.d_transform({z}) - 2.0; };
    double high = 2.0 * edge;
    while (excess(high) > 0.0) high *= 2.0;
    return bracketed_root([&](double z) { return z <= edge ? 1.0 : excess(z); }, edge, high, within(1e-12));
}

/// Sets the flags of the deviations that first order describes. From 3.5 widths on those of overlaps are at most 6 %
/// larger, see the header.
void mark_reliable(SpikeFluctuation& of, SignalStrength threshold, double d) {
    const auto beyond = [&](double widths) {
        return of.strength.value >= threshold.value * (1.0 + widths / std::cbrt(d));
    };
    const KurtosisEffect& added = of.of_entries;
    of.reliable = beyond(1.0) && std::abs(added.outlier_variance) < of.gaussian.outlier;
    of.reliable_overlaps = beyond(3.5) && std::abs(added.overlap_left_variance) < of.gaussian.overlap_left &&
                           std::abs(added.overlap_right_variance) < of.gaussian.overlap_right;
}

}  // namespace

std::size_t pilot_count(std::size_t side) {
    if (side < 3) return 0;
    const double p = static_cast<double>(side);
    const double log_log = std::log(std::log(p));
    const double exponent = log_log > 2.01 ? 1.0 / log_log : 1.0 / 2.01;
    return static_cast<std::size_t>(std::floor(std::pow(p, exponent)));
}

std::size_t pilot_within(std::size_t k, std::size_t short_side) {
    return short_side == 0 ? 0 : std::min(k, (short_side - 1) / 2);
}

FiniteSize finite_size(const SeparableLaw& law, std::size_t rows, std::size_t columns,
                       std::span<const SignalStrength> strengths, double level, const NoiseEntries& entries) {
    require_size(law, rows, columns);
    require_known(entries);
    const double upper_quantile = tracy_widom_upper_quantile(level, entries.field);
    const std::size_t short_side = std::min(rows, columns);
    const double p = static_cast<double>(short_side);
    const double shift = kurtosis_edge_shift(law, columns, entries);
    const Noise noise(law, rows, columns, entries);
    const double edge = noise.edge();

    FiniteSize result;
    result.rows = rows;
    result.columns = columns;
    result.field = entries.field;
    result.kurtosis_shift = shift;
    result.top_noise_shift = tracy_widom_mean_of(entries.field) * noise.edge_scale() + shift;
    result.top_noise_standard_deviation = std::sqrt(tracy_widom_variance_of(entries.field)) * noise.edge_scale();
    result.regularity = law.edge_regularity(3.0 / p);

    CutoffTable table(law, noise);
    const std::size_t k = pilot_within(pilot_count(short_side), short_side);
    const double margin = 1.0 / std::cbrt(p);
    if (const auto edge_estimate = table.estimate(k, 1.0, 1, 0)) result.edge_estimate = Eigenvalue{*edge_estimate};
    table.add_estimating("eoptshrink", k, 1.0, 1, margin);
    table.add_estimating("eoptshrink:margin=0", k, 1.0, 1, 0.0);
    table.add_edge_fit("eoptshrink:edgefit", k, margin);
    table.add_estimating("eoptshrink:paper", pilot_within(pilot_count(columns), short_side), 1.0, 2,
                         1.0 / std::cbrt(static_cast<double>(columns)));
    table.add_estimating("eoptshrink:author", k, 1.1, 1, 0.0);
    table.add(fmt::format("tw-test:level={:g}", level), edge + upper_quantile * noise.edge_scale());
    const double beta = std::min(law.aspect().value(), 1.0 / law.aspect().value());
    const double noise_level = noise.median() / MarchenkoPastur(AspectRatio(beta)).median().value;
    table.add("gd-hard", noise_level * white::hard_threshold_squared(beta));
    table.add("gd-shrink", noise_level * std::pow(1.0 + std::sqrt(beta), 2));
    table.add("screenot", half_shrinkage(law));

    result.rules = table.take();
    for (const SignalStrength strength : strengths)
        if (strength > law.detection_threshold())
            result.spikes.push_back(spike_fluctuation(law, strength, rows, columns, entries));
    return result;
}

// Conditionally on Z, the bilinear forms of Haar u, v in the resolvent R = (Z Z^T - z)^(-1) and its companion,
//   e1 = z u' R u - z m1,   e2 = z v' R~ v - z m2,   e3 = D u' Z R~ v,   where D is the strength,
// are independent to first order. The u u' entry of the spiked resolvent is (z m1 + e1) / (z G) with
// G = (1 + e3)^2 - (z m1 + e1)(z m2 + e2) / ((1 + t)(1 + t/beta)): its pole is the outlier, its residue the overlap.
// Both are linearised here with y = 1/(x/z - 1). A prime is z d/dz, which on the curve is -p d/dlog t with p = 1/F.
// The formulas avoid cancellation: quantities that are small for strong spikes are computed directly.
SpikeVariances spike_variances(const SpikeCurve& curve, Eigenvalue edge, AspectRatio aspect, std::size_t rows,
                               std::size_t columns) {
    const double t = curve.t;
    const double p = 1.0 / curve.fall;
    const double s = curve.slope;
    const double dp = p * p * s;  // derivative of p with respect to log t

    struct Side {
        double q;              // t/beta for rows, t for columns; z m = -(1 + q)
        double fraction;       // q / (1 + q)
        double yy, yyy, yyyy;  // covariances of (y, y), (y, y^2), (y^2, y^2)
    };
    const auto side = [&](double q) {
        const double m = -(1.0 + q);
        const double excess = curve.one_minus_fall * p - q;  // p - 1 - q
        const double yy = q * excess;
        const double inner = excess - q + dp;
        const double d_yy = -p * q * inner;
        const double yyy = d_yy / 2.0 - yy;
        const double d_inner = dp - 2.0 * q + 2.0 * p * s * dp + p * p * curve.slope_derivative;
        const double dd_yy = p * (dp * q * inner + p * q * inner + p * q * d_inner);
        const double d_yyy = dd_yy / 2.0 - d_yy;
        const double yyyy = (d_yyy - 3.0 * yyy + 2.0 * (m * yyy - m * m * yy - yy * yy)) / 3.0;
        return Side{q, q / (1.0 + q), yy, yyy, yyyy};
    };
    const Side left = side(t / aspect.value());
    const Side right = side(t);
    // int x/z y^j, j = 2, 3, 4, over the n eigenvalues, and the bounds for their differences below.
    const double curvature = 1.0 + p + dp;
    const double x2 = p * left.q;
    const double x3 = -p * left.q * curvature / 2.0;
    const double d_x3 =
        p * left.q * ((dp + p) * curvature + p * (dp + 2.0 * p * s * dp + p * p * curve.slope_derivative));
    const double x4 = (d_x3 / 2.0 - 2.0 * x3) / 3.0;
    const double reach = edge.value / curve.z;
    const double xx4 = std::clamp(x3 + x4, 0.0, reach * x4);
    const double xxx4 = std::clamp(x2 + 2.0 * x3 + x4, 0.0, reach * reach * x4);
    const double cross = 1.0 / ((1.0 + t) * (1.0 + left.q));  // D^2 / z

    const double h = left.fraction + right.fraction;
    const double K = 1.0 + h * p;  // -z T' / T
    const double bend = p * (p * (left.fraction / (1.0 + left.q) + right.fraction / (1.0 + right.q)) + h * dp) / K;
    const double n = static_cast<double>(rows);
    const double d = static_cast<double>(columns);
    // a e + b e' of one side has the variance of a y + b y^2, times 2 over its size.
    const auto variance = [](const Side& of, double size, double a, double b) {
        return std::max(0.0, 2.0 / size * (a * a * of.yy + 2.0 * a * b * of.yyy + b * b * of.yyyy));
    };
    // The variance of log(overlap), and its covariance with log(outlier), whose forms are e1 / (K z m1), e2 / (K z m2)
    // and -2 e3 / K.
    struct LogOverlap {
        double variance;
        double covariance;
    };
    const auto overlap = [&](const Side& own, const Side& other, double own_size, double other_size) {
        const double own_mean = -(1.0 + own.q);
        const double other_mean = -(1.0 + other.q);
        const double bends = K + 1.0 + bend;              // -z T'' / T'
        const double own_ratio = 1.0 + p * own.fraction;  // -z m' / m
        const double other_ratio = 1.0 + p * other.fraction;
        const double own_a = (1.0 + (bends + 1.0 - own_ratio - other_ratio) / K) / own_mean;
        const double other_a = (bends + 1.0 - 2.0 * own_ratio) / (K * other_mean);
        const double own_part = variance(own, own_size, own_a, 1.0 / (K * own_mean));
        const double other_part = variance(other, other_size, other_a, 1.0 / (K * other_mean));
        // a y + b y^2 equals (a x/z + c) y^2 with c = b - a: c is small for strong spikes, while a dominates near the
        // threshold.
        const double rest = p * other.fraction + bend;
        const double a = -2.0 / K * (1.0 + rest);
        const double b = -2.0 / K;
        const double c = 2.0 / K * rest;
        const double square =
            rest > 1.0 ? a * a * x2 + 2.0 * a * b * x3 + b * b * x4 : a * a * xxx4 + 2.0 * a * c * xx4 + c * c * x4;
        const double cross_part = std::max(0.0, cross / d * square);
        const double own_covariance = 2.0 / own_size * (own_a * own.yy + own.yyy / (K * own_mean)) / (K * own_mean);
        const double other_covariance =
            2.0 / other_size * (other_a * other.yy + other.yyy / (K * other_mean)) / (K * other_mean);
        const double cross_covariance = -2.0 / K * cross / d * (a * x2 + b * x3);
        return LogOverlap{own_part + other_part + cross_part, own_covariance + other_covariance + cross_covariance};
    };
    const LogOverlap of_left = overlap(left, right, n, d);
    const LogOverlap of_right = overlap(right, left, d, n);
    SpikeVariances result;
    LogVariances& gaussian = result.log;
    gaussian.outlier = (variance(left, n, 1.0 / (1.0 + left.q), 0.0) + variance(right, d, 1.0 / (1.0 + right.q), 0.0) +
                        4.0 * cross / d * x2) /
                       (K * K);
    gaussian.overlap_left = of_left.variance;
    gaussian.overlap_right = of_right.variance;
    gaussian.outlier_with_left = of_left.covariance;
    gaussian.outlier_with_right = of_right.covariance;
    result.strength_response = K / 2.0;
    result.left_response = bend - p * left.fraction;
    result.right_response = bend - p * right.fraction;
    return result;
}

SpikeFluctuation spike_fluctuation(const SeparableLaw& law, SignalStrength strength, std::size_t rows,
                                   std::size_t columns, const NoiseEntries& entries) {
    require_size(law, rows, columns);
    require_known(entries);
    const SpikePrediction spike = law.spike(strength);
    const SpikeCurve curve = law.spike_curve(strength);
    SpikeFluctuation result;
    result.strength = strength;
    result.gaussian = spike_variances(curve, law.bulk_edge(), law.aspect(), rows, columns).log;
    LogVariances& gaussian = result.gaussian;
    if (entries.field == Field::complex)
        for (double* part : {&gaussian.outlier, &gaussian.overlap_left, &gaussian.overlap_right,
                             &gaussian.outlier_with_left, &gaussian.outlier_with_right})
            *part *= 0.5;
    if (entries.excess_kurtosis != 0.0)
        result.of_entries = kurtosis_effect(law, strength, rows, columns, entries, gaussian);
    const KurtosisEffect& added = result.of_entries;
    const auto deviation = [](double of, double gaussian_part, double added_part) {
        return of * std::sqrt(std::max(0.0, gaussian_part + added_part));
    };
    result.outlier = deviation(curve.z, gaussian.outlier, added.outlier_variance);
    result.overlap_left = deviation(spike.overlap_left.value, gaussian.overlap_left, added.overlap_left_variance);
    result.overlap_right = deviation(spike.overlap_right.value, gaussian.overlap_right, added.overlap_right_variance);
    mark_reliable(result, law.detection_threshold(), static_cast<double>(columns));
    return result;
}

std::vector<TopNoiseQuantile> top_noise_quantiles(const FiniteSize& finite, Eigenvalue edge) {
    const double edge_scale = finite.top_noise_standard_deviation / std::sqrt(tracy_widom_variance_of(finite.field));
    std::vector<TopNoiseQuantile> quantiles;
    for (const double probability : {0.01, 0.05, 0.5, 0.95, 0.99}) {
        const double standard = tracy_widom_quantile(probability, finite.field);
        quantiles.push_back({probability, standard, {edge.value + finite.kurtosis_shift + edge_scale * standard}});
    }
    return quantiles;
}

}  // namespace spiked::theory
