#include "theory/laws/separable_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "theory/laws/root.hpp"

namespace spiked::theory {
namespace {

/// Weighted sums of u, u^2, u^3 over a side, where u = r s / (1 + s (1 - r)) for the relative value r of an atom.
struct Moments {
    double first = 0.0;
    double second = 0.0;
    double third = 0.0;
};

Moments moments(const RelativeAtoms& side, double s) {
    // Four partial sums are faster, and keep the rounding error of 10^4 terms near 1e-15.
    constexpr std::size_t partial_sums = 4;
    std::array<double, partial_sums> first{};
    std::array<double, partial_sums> second{};
    std::array<double, partial_sums> third{};
    const std::size_t count = side.value.size();
    const std::size_t whole = count - count % partial_sums;
    const double* r = side.value.data();
    const double* w = side.weight.data();
    for (std::size_t i = 0; i < whole; i += partial_sums) {
        for (std::size_t lane = 0; lane < partial_sums; ++lane) {
            const double u = r[i + lane] * s / (1.0 + s * (1.0 - r[i + lane]));
            const double one = w[i + lane] * u;
            const double two = one * u;
            first[lane] += one;
            second[lane] += two;
            third[lane] += two * u;
        }
    }
    for (std::size_t i = whole; i < count; ++i) {
        const double u = r[i] * s / (1.0 + s * (1.0 - r[i]));
        first[0] += w[i] * u;
        second[0] += w[i] * u * u;
        third[0] += w[i] * u * u * u;
    }
    return {(first[0] + first[1]) + (first[2] + first[3]), (second[0] + second[1]) + (second[2] + second[3]),
            (third[0] + third[1]) + (third[2] + third[3])};
}

/// log(value / reference), accurate also for ratios near 1.
double log_ratio(double value, double reference) {
    const double difference = (value - reference) / reference;
    return std::abs(difference) < 0.5 ? std::log1p(difference) : std::log(value) - std::log(reference);
}

}  // namespace

// Solves f(s) = sum w u(s) = target. f is concave, increasing and below s, so a Newton step from any point lands left
// of the root and the next ones increase towards it; s = target is always left of the root.
SeparableLaw::SidePoint SeparableLaw::solve(const RelativeAtoms& side, double target, double start) {
    double s = std::max(start, target);
    Moments sum;
    double last_step = std::numeric_limits<double>::infinity();
    for (int iteration = 0; iteration < 2000; ++iteration) {
        sum = moments(side, s);
        // The square of the last step is negligible, so these sums are final.
        if (last_step <= 1e-8 * s) break;
        const double next = std::max(target, s + (target - sum.first) * (1.0 + s) * s / (sum.first + sum.second));
        last_step = std::abs(next - s);
        s = next;
        if (last_step <= 1e-15 * s) break;
    }
    const double S1 = target;
    const double S2 = sum.second;
    const double S3 = sum.third;
    const double total = S1 + S2;
    SidePoint point;
    point.s = s;
    point.transform = s / (1.0 + s) / side.largest;
    point.elasticity = S1 / total;
    point.elasticity_slope = (S1 / total) * ((S2 / total) * ((S2 - S1) / total) - 2.0 * (S1 / total) * (S3 / total));
    return point;
}

SeparableLaw::CurvePoint SeparableLaw::at(double t, const CurvePoint& near) const {
    const double beta = aspect_.value();
    // The starting point follows dlog s = (1 + s) E dlog t, after which two or three Newton steps remain.
    const auto start = [&](const SidePoint& from) {
        if (from.s == 0.0) return 0.0;
        const double exponent = std::clamp((1.0 + from.s) * from.elasticity * std::log(t / near.t), -1.0, 1.0);
        return from.s * std::exp(exponent);
    };
    CurvePoint point;
    point.t = t;
    point.row = solve(row_, t / beta, start(near.row));
    point.column = solve(column_, t, start(near.column));
    point.z = t / (point.row.transform * point.column.transform);
    point.fall = (point.row.elasticity - 0.5) + (point.column.elasticity - 0.5);
    point.fall_slope = point.row.elasticity_slope + point.column.elasticity_slope;
    return point;
}

double SeparableLaw::rise(double t) const { return t / (1.0 + t) + t / (aspect_.value() + t); }

double SeparableLaw::d_transform_at(const CurvePoint& point) const {
    return (1.0 + point.t) * (1.0 + point.t / aspect_.value()) / point.z;
}

SeparableLaw::SeparableLaw(Spectrum row, Spectrum column, AspectRatio aspect)
    : row_spectrum_(std::move(row)),
      column_spectrum_(std::move(column)),
      aspect_(aspect),
      row_(row_spectrum_),
      column_(column_spectrum_) {
    // The edge is the minimum of z(t), where F = 0; F is strictly decreasing.
    CurvePoint last;
    const double t = increasing_root(
        [&](double trial) {
            last = at(trial, last);
            return ValueAndSlope{-last.fall, -last.fall_slope};
        },
        std::sqrt(aspect_.value()), 0.0, std::numeric_limits<double>::infinity());
    edge_ = at(t, last);
    if (!(edge_.z > 1e-280 && edge_.z < 1e280))
        throw usage_error(
            "noise with its bulk edge at {:.3g} is not usable (outside 1e-280 to 1e280 doubles lose precision): "
            "scale the spectra",
            edge_.z);
    threshold_ = 1.0 / std::sqrt(d_transform_at(edge_));
    const double root = std::cbrt(edge_.z);
    tracy_widom_scale_ = std::cbrt(2.0 / edge_curvature()) / root / root;
}

double SeparableLaw::edge_curvature() const { return -edge_.z / (edge_.t * edge_.t) * edge_.fall_slope; }

SeparableLaw::CurvePoint SeparableLaw::point_with_strength(double strength) const {
    // log T(t) + 2 log d has slope h + F > 0 on (0, t*], smooth even at t*. The guess is exact for white noise.
    CurvePoint last = edge_;
    const double guess = edge_.t * std::pow(threshold_ / strength, 2);
    const double inverse_square = 1.0 / strength / strength;
    const double t = increasing_root(
        [&](double trial) {
            last = at(trial, last);
            return ValueAndSlope{log_ratio(d_transform_at(last), inverse_square), rise(trial) + last.fall};
        },
        guess, 0.0, edge_.t);
    return at(t, last);
}

SeparableLaw::CurvePoint SeparableLaw::point_with_eigenvalue(Eigenvalue z) const {
    constexpr double most = 1e140;  // the square of the limit for strengths
    if (!(z.value >= edge_.z && z.value < most * edge_.z && std::isfinite(z.value)))
        throw usage_error(
            "eigenvalue {} is not usable here (it lies below the bulk edge {}, is above 1e140 times the edge, or is "
            "not finite): give one at or above the edge",
            z.value, edge_.z);
    if (z.value == edge_.z) return edge_;
    // log z(t) is convex in log t and has its minimum at the edge; this guess is exact for white noise.
    const double excess = (z.value / edge_.z - 1.0) / -edge_.fall_slope;
    const double distance = std::log1p(excess + std::sqrt(excess) * std::sqrt(2.0 + excess));
    CurvePoint last = edge_;
    const double t = increasing_root(
        [&](double trial) {
            last = at(trial, last);
            return ValueAndSlope{-log_ratio(last.z, z.value), last.fall};
        },
        edge_.t * std::exp(-distance), 0.0, edge_.t, 1e-15);
    return at(t, last);
}

void SeparableLaw::require_strength(double d) const {
    constexpr double most = 1e70;  // above it squares of t = (threshold / strength)^2 underflow
    const double limit = std::min(most * threshold_, 1e150);  // its square must be finite too
    if (!(d >= 0.0 && d < limit))
        throw usage_error(
            "strength {} is not usable (it must be from 0 up to 1e70 detection thresholds, {:.3g}): give one in this "
            "range",
            d, limit);
}

SpikePrediction SeparableLaw::spike(SignalStrength strength) const {
    const double d = strength.value;
    require_strength(d);
    SpikePrediction result;
    result.strength = strength;
    result.detectable = d > threshold_;
    const CurvePoint point = result.detectable ? point_with_strength(d) : edge_;
    const double beta = aspect_.value();
    const double left = 1.0 + point.t / beta;
    const double right = 1.0 + point.t;
    result.outlier = {std::max(point.z, edge_.z)};
    result.stieltjes_left = -left / point.z;
    result.stieltjes_right = -right / point.z;
    const double fall = result.detectable ? std::max(0.0, point.fall) : 0.0;
    const double total = fall + rise(point.t);
    result.overlap_left = {std::min(1.0, left * fall / total)};
    result.overlap_right = {std::min(1.0, right * fall / total)};
    result.residual = {std::sqrt(point.z) * (rise(point.t) / total)};
    result.d_transform = result.detectable ? 1.0 / d / d : d_transform_at(edge_);
    result.d_transform_derivative = fall > 0.0 ? -(result.d_transform / point.z) * (1.0 + rise(point.t) / fall)
                                               : -std::numeric_limits<double>::infinity();
    return result;
}

// With r_k = S_k / (S_1 + S_2), S_k = sum w u^k: E = 1 - r_2, and u moves by u (1 + u) E dlog tau, so that
// dr_k = k E (r_k + r_{k+1}) - r_k G with G = E + 2 E (r_2 + r_3). No term below cancels when u is small.
SpikeCurve SeparableLaw::spike_curve(SignalStrength strength) const {
    require_strength(strength.value);
    if (!(strength.value > threshold_))
        throw usage_error("strength {} has no outlier (it is not above the threshold {}): give a larger one",
                          strength.value, threshold_);
    const CurvePoint point = point_with_strength(strength.value);
    SpikeCurve curve{.t = point.t, .z = std::max(point.z, edge_.z)};
    for (const auto& [side, solved] : {std::pair{&row_, &point.row}, std::pair{&column_, &point.column}}) {
        double sum[5] = {};
        for (std::size_t i = 0; i < side->value.size(); ++i) {
            const double u = side->value[i] * solved->s / (1.0 + solved->s * (1.0 - side->value[i]));
            double power = side->weight[i] * u;
            for (int k = 1; k <= 4; ++k, power *= u) sum[k] += power;
        }
        const double total = sum[1] + sum[2];
        const double r2 = sum[2] / total;
        const double r3 = sum[3] / total;
        const double r4 = sum[4] / total;
        const double e = sum[1] / total;
        const double g = e + 2.0 * e * (r2 + r3);
        const double dr2 = 2.0 * e * (r2 + r3) - r2 * g;
        const double dr3 = 3.0 * e * (r3 + r4) - r3 * g;
        curve.one_minus_fall += r2;
        curve.slope += dr2;
        // The second derivative uses dr_2 = 2 e (r_2 + r_3) - r_2 g and de = -dr_2.
        const double dg = -dr2 * (1.0 + 2.0 * (r2 + r3)) + 2.0 * e * (dr2 + dr3);
        curve.slope_derivative += -2.0 * dr2 * (r2 + r3) + 2.0 * e * (dr2 + dr3) - dr2 * g - r2 * dg;
    }
    curve.fall = std::max(1.0 - curve.one_minus_fall, std::numeric_limits<double>::min());
    return curve;
}

SignalStrength SeparableLaw::strength_of(Eigenvalue outlier) const {
    return {1.0 / std::sqrt(d_transform_at(point_with_eigenvalue(outlier)))};
}

double SeparableLaw::stieltjes_left(Eigenvalue z) const {
    return -(1.0 + point_with_eigenvalue(z).t / aspect_.value()) / z.value;
}

double SeparableLaw::stieltjes_right(Eigenvalue z) const { return -(1.0 + point_with_eigenvalue(z).t) / z.value; }

double SeparableLaw::d_transform(Eigenvalue z) const { return d_transform_at(point_with_eigenvalue(z)); }

double SeparableLaw::d_transform_derivative(Eigenvalue z) const {
    const CurvePoint point = point_with_eigenvalue(z);
    if (z.value == edge_.z || !(point.fall > 0.0)) return -std::numeric_limits<double>::infinity();
    return -(d_transform_at(point) / z.value) * (1.0 + rise(point.t) / point.fall);
}

EdgeRegularity SeparableLaw::edge_regularity(double few) const {
    constexpr std::size_t most = 3;
    // The number of atoms that may be removed from a side: their total weight is small, and a nonzero atom remains.
    const auto removable = [&](const Spectrum& spectrum) {
        std::size_t count = 0;
        double weight = 0.0;
        while (count < most && count + 1 < spectrum.atoms().size() && spectrum.atoms()[count + 1].value > 0.0) {
            weight += spectrum.atoms()[count].weight;
            if (weight > few * (1.0 + 1e-12)) break;
            ++count;
        }
        return count;
    };
    const auto without = [](const Spectrum& spectrum, std::size_t count) {
        std::vector<Atom> rest(spectrum.atoms().begin() + static_cast<std::ptrdiff_t>(count), spectrum.atoms().end());
        double weight = 0.0;
        for (const Atom& atom : rest) weight += atom.weight;
        for (Atom& atom : rest) atom.weight /= weight;
        return Spectrum(std::move(rest));
    };
    const auto name = [](const char* side, const Spectrum& spectrum, std::size_t count) {
        std::string text = fmt::format("{} eigenvalue{} ", side, count > 1 ? "s" : "");
        for (std::size_t i = 0; i < count; ++i)
            text += fmt::format("{}{:.6g} (weight {:.3g})", i > 0 ? ", " : "", spectrum.atoms()[i].value,
                                spectrum.atoms()[i].weight);
        return text;
    };
    const std::size_t row_most = removable(row_spectrum_);
    const std::size_t column_most = removable(column_spectrum_);
    for (std::size_t rows = 0; rows <= row_most; ++rows) {
        for (std::size_t columns = 0; columns <= column_most; ++columns) {
            if (rows + columns == 0) continue;
            const SeparableLaw rest(without(row_spectrum_, rows), without(column_spectrum_, columns), aspect_);
            // A single eigenvalue b of B leaves the bulk of the remaining law when b g_B(t*) > 1, and likewise for A.
            const bool row_detaches =
                rows == 0 || row_spectrum_.atoms()[rows - 1].value * rest.edge_.row.transform > 1.0;
            const bool column_detaches =
                columns == 0 || column_spectrum_.atoms()[columns - 1].value * rest.edge_.column.transform > 1.0;
            if (!row_detaches || !column_detaches) continue;
            std::string atoms = rows > 0 ? name("row", row_spectrum_, rows) : std::string();
            if (columns > 0) atoms += (rows > 0 ? " and " : "") + name("column", column_spectrum_, columns);
            return {false, fmt::format("irregular edge: {} detach{} from the bulk, whose own edge is {:.6g}; pure "
                                       "noise has outliers there, bulk_edge is the edge of their cluster, and "
                                       "Tracy-Widom does not apply",
                                       atoms, rows + columns > 1 ? "" : "es", rest.edge_.z)};
        }
    }
    return {};
}

}  // namespace spiked::theory
