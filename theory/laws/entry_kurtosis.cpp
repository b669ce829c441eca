#include "theory/laws/entry_kurtosis.hpp"

#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::theory {
namespace {

/// The variance of the entries of Z, times d.
double variance_of_white(const SeparableLaw& law) {
    if (!is_white(law))
        throw usage_error(
            "the effect of the entries' kurtosis is known for white noise only (A or B is not a multiple of the "
            "identity): leave the entries out, or take white noise");
    return law.row().largest() * law.column().largest();
}

/// Unit white noise at the outlier z = (1 + t)(beta + t) / t of a spike of strength sqrt(beta / t). A function f of t
/// has the derivative f'(t) / slope by z.
struct OutlierPoint {
    double beta;
    double t;
    double z = (1.0 + t) * (beta + t) / t;
    double slope = 1.0 - beta / (t * t);             ///< dz/dt, negative
    double bend = -beta / (beta - t * t) / t;        ///< z''/2 over z'
    double twist = beta / (beta - t * t) / (t * t);  ///< z'''/6 over z'
    double root = std::sqrt(z);
    double d_transform = t / beta;  ///< z m1 m2 = 1 / strength^2

    /// k/d times this is the shift of the outlier; then its first and second derivative by z.
    [[nodiscard]] double shift() const { return (1.0 + beta + 2.0 * t) * t / beta; }
    [[nodiscard]] double shift_slope() const { return (1.0 + beta + 4.0 * t) / (beta * slope); }
    [[nodiscard]] double shift_bend() const {
        return (4.0 - shift_slope() * beta * 2.0 * beta / (t * t * t)) / (beta * slope * slope);
    }
};

/// One side of the matrix, whose Stieltjes transform is m = -factor t / (pole + t), with d(z m)/dt = -factor.
struct VectorSide {
    double size;
    double factor;
    double pole;
    double fourth_powers;
    double t;
    double m = -factor * t / (pole + t);
    double m_slope = -factor * pole / ((pole + t) * (pole + t));             ///< dm/dt
    double m_bend = factor * pole / ((pole + t) * (pole + t) * (pole + t));  ///< half of d^2m/dt^2

    [[nodiscard]] double overlap(const OutlierPoint& at) const { return t * m * at.slope; }
    /// sum_i (x_i y_i)^2 and the like of directions that are Haar but for their components along the true vector: what
    /// those components add, with the square of the sum of the products of two of them.
    [[nodiscard]] double concentrated(double along) const { return along * along * (fourth_powers - 3.0 / size); }
};

/// The terms added to the variance of a logarithm and to its covariance with that of the outlier, per k/d^2, and to the
/// mean, per k/d and in units of the limit.
struct Effect {
    double variance = 0.0;
    double shift = 0.0;
    double with_outlier = 0.0;
};

Effect of_outlier(const OutlierPoint& at, const VectorSide& left, const VectorSide& right, double columns,
                  double variance) {
    const double fourth_left = 3.0 / left.size + left.concentrated(left.overlap(at));
    const double fourth_right = 3.0 / right.size + right.concentrated(right.overlap(at));
    const double second = at.z * at.z *
                          (left.m * left.m * left.size * fourth_right + right.m * right.m * right.size * fourth_left +
                           2.0 * left.m * right.m);
    const double third = 8.0 * at.z * at.d_transform;
    return {(second + third) / (at.z * at.z) + 2.0 * columns * at.shift_slope() * variance, at.shift() / at.z};
}

/// The overlap of the side `own`. A dot is the derivative by e of the matrix with one more row or column, sqrt(e) times
/// the true vector of that side.
Effect of_overlap(const OutlierPoint& at, const VectorSide& own, const VectorSide& other, double columns,
                  double variance, double covariance, double outlier_variance) {
    const double z = at.z;
    const double overlap = own.overlap(at);
    const double along_own = std::sqrt(overlap);  // the component of the observed vector along the true one
    const double along_other = std::sqrt(other.overlap(at));
    // u' (Y Y' - x)^(-1) u = overlap / (z - x) + constant + linear (x - z) + ...
    const double constant = -at.t * (own.m_slope + own.m * at.bend);
    const double linear = -at.t * (own.m_bend - own.m * (at.bend * at.bend - at.twist)) / at.slope;
    const double own_length = overlap * linear;         // squared length of the dot of the own vector, orthogonal to it
    const double other_product = -overlap / (2.0 * z);  // of the other vector and its dot
    const double other_length = other_product * other_product + overlap * (z * linear + constant) / z;
    const double own_dot_along = -along_own * constant;
    const double other_dot_along =
        other_product * along_other - along_own * std::sqrt(at.d_transform) * (1.0 + at.t * at.bend) / at.root;

    // The second derivative of the overlap by entry ij is P_j + Q_i, with P = a v^2 + 2 b v v-dot of the other side's
    // vector and Q of the own side's.
    const double a_other = 2.0 * own.factor / at.slope * overlap;
    const double b_other = -2.0 * z * own.m;
    const double a_own = 2.0 * other.factor / at.slope * overlap;
    const double b_own = -2.0 * z * other.m;
    const double p = a_other + 2.0 * b_other * other_product;
    const double p_squared =
        (3.0 * a_other * a_other + 12.0 * a_other * b_other * other_product +
         4.0 * b_other * b_other * (other_length + 2.0 * other_product * other_product)) /
            other.size +
        other.concentrated(a_other * along_other * along_other + 2.0 * b_other * along_other * other_dot_along);
    const double q_squared = (3.0 * a_own * a_own + 4.0 * b_own * b_own * own_length) / own.size +
                             own.concentrated(a_own * overlap + 2.0 * b_own * along_own * own_dot_along);
    const double second = (own.size * p_squared + other.size * q_squared + 2.0 * p * a_own) / 4.0;

    // First derivative f u v', third one g u v'.
    const double f = 2.0 * at.root;
    const double f_dot = overlap / at.root;
    const double g = 12.0 * at.root * at.d_transform;
    const double g_dot = 12.0 * overlap * (at.d_transform / (2.0 * at.root) + at.root / (at.beta * at.slope));
    const double third =
        (f_dot * g_dot + (f_dot * g + f * g_dot) * other_product + f * g * (own_length + other_length)) / 3.0;

    // The shift of the mean is k/d times the overlap times this factor.
    const double factor = at.shift_slope() - at.t * at.t / (at.beta * (own.pole + at.t));
    const double factor_slope = at.shift_bend() - (at.t * at.t + 2.0 * own.pole * at.t) /
                                                      (at.beta * (own.pole + at.t) * (own.pole + at.t) * at.slope);
    const double fourth = 2.0 * columns * (factor * variance + z * factor_slope * covariance);

    // With the outlier, whose second derivative is b (v^2 and u^2) and whose first and third ones are f and g times u
    // v.
    const double p_mixed = b_other * (3.0 * p / other.size + other.concentrated(along_other) *
                                                                 (a_other * along_other * along_other +
                                                                  2.0 * b_other * along_other * other_dot_along));
    const double q_mixed =
        b_own * (3.0 * a_own / own.size +
                 own.concentrated(along_own) * (a_own * overlap + 2.0 * b_own * along_own * own_dot_along));
    const double second_mixed = (own.size * p_mixed + other.size * q_mixed + b_other * a_own + b_own * p) / 4.0;
    const double third_mixed = (f * (g_dot + g * other_product) + g * (f_dot + f * other_product)) / 6.0;
    const double fourth_mixed =
        columns * (factor * covariance + z * factor_slope * outlier_variance + at.shift_slope() * covariance);
    return {(second + third) / (overlap * overlap) + fourth, factor,
            (second_mixed + third_mixed) / (overlap * z) + fourth_mixed};
}

}  // namespace

bool is_white(const SeparableLaw& law) { return law.row().atoms().size() == 1 && law.column().atoms().size() == 1; }

double kurtosis_edge_shift(const SeparableLaw& law, std::size_t columns, const NoiseEntries& entries) {
    if (entries.excess_kurtosis == 0.0) return 0.0;
    const double root = std::sqrt(law.aspect().value());
    return variance_of_white(law) * entries.excess_kurtosis / static_cast<double>(columns) * (1.0 + root) *
           (1.0 + root) / root;
}

double kurtosis_shift_at(const SeparableLaw& law, std::size_t columns, const NoiseEntries& entries, Eigenvalue at) {
    const double of_edge = kurtosis_edge_shift(law, columns, entries);
    const double edge = law.bulk_edge().value;
    if (of_edge == 0.0 || at.value >= edge) return of_edge;
    const double root = std::sqrt(law.aspect().value());
    const double lower = edge * std::pow((1.0 - root) / (1.0 + root), 2);
    return of_edge * at.value / edge * (2.0 * at.value - edge - lower) / (edge - lower);
}

KurtosisEffect kurtosis_effect(const SeparableLaw& law, SignalStrength strength, std::size_t rows, std::size_t columns,
                               const NoiseEntries& entries, const LogVariances& gaussian) {
    (void)variance_of_white(law);
    return kurtosis_effect(law.spike_curve(strength).t, rows, columns, entries, gaussian);
}

KurtosisEffect kurtosis_effect(double t, std::size_t rows, std::size_t columns, const NoiseEntries& entries,
                               const LogVariances& gaussian) {
    const double beta = AspectRatio::of(rows, columns).value();
    const double n = static_cast<double>(rows);
    const double d = static_cast<double>(columns);
    const OutlierPoint at{.beta = beta, .t = t};
    const VectorSide left{.size = n,
                          .factor = 1.0 / beta,
                          .pole = 1.0,
                          .fourth_powers = entries.left_fourth_powers.value_or(3.0 / n),
                          .t = at.t};
    const VectorSide right{.size = d,
                           .factor = 1.0,
                           .pole = beta,
                           .fourth_powers = entries.right_fourth_powers.value_or(3.0 / d),
                           .t = at.t};
    const Effect outlier = of_outlier(at, left, right, d, gaussian.outlier);
    const Effect overlap_left =
        of_overlap(at, left, right, d, gaussian.overlap_left, gaussian.outlier_with_left, gaussian.outlier);
    const Effect overlap_right =
        of_overlap(at, right, left, d, gaussian.overlap_right, gaussian.outlier_with_right, gaussian.outlier);
    const double k = entries.excess_kurtosis / d;
    return {.outlier_variance = k / d * outlier.variance,
            .overlap_left_variance = k / d * overlap_left.variance,
            .overlap_right_variance = k / d * overlap_right.variance,
            .outlier_with_left = k / d * overlap_left.with_outlier,
            .outlier_with_right = k / d * overlap_right.with_outlier,
            .outlier_shift = k * outlier.shift,
            .overlap_left_shift = k * overlap_left.shift,
            .overlap_right_shift = k * overlap_right.shift};
}

}  // namespace spiked::theory
