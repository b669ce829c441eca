#include "theory/laws/profile_law.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>

#include "theory/laws/root.hpp"

namespace spiked::theory {
namespace {

using std::abs;

constexpr std::size_t edge_points = 8;

/// Checks numbers of at least 0, one for each class, with the sum 1 up to 1e-9, and makes the sum exact.
void require_fractions(std::vector<double>& fractions, std::size_t classes, const char* what) {
    if (fractions.size() != classes)
        throw usage_error("there are {} {} (the variance profile has {} classes): give one for each", fractions.size(),
                          what, classes);
    const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
    if (!(*std::min_element(fractions.begin(), fractions.end()) >= 0.0 && abs(sum - 1.0) <= 1e-9))
        throw usage_error("the {} go down to {} and sum to {} (they are fractions): make the sum 1", what,
                          *std::min_element(fractions.begin(), fractions.end()), sum);
    for (double& fraction : fractions) fraction /= sum;
}

/// The roots of these weights, or of equal ones where none are given.
std::vector<double> weight_roots(std::vector<double> weights, std::size_t classes, const char* what) {
    if (weights.empty()) weights.assign(classes, 1.0 / static_cast<double>(classes));
    require_fractions(weights, classes, what);
    for (double& weight : weights) {
        if (weight == 0.0) throw usage_error("one of the {} is 0 (it is a class without lines): leave it out", what);
        weight = std::sqrt(weight);
    }
    return weights;
}

template <class T>
T bilinear(const std::vector<T>& x, const std::vector<T>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), T(0));
}

/// True while x is positive: the iteration below the edge leaves this range.
bool admissible(double x) { return x > 0.0 && std::isfinite(x); }
bool admissible(const std::complex<double>& x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); }

}  // namespace

ProfileLaw::ProfileLaw(VarianceProfile profile, AspectRatio aspect)
    : rows_(profile.rows), columns_(profile.columns), beta_(aspect.value()) {
    if (rows_ == 0 || columns_ == 0 || profile.variances.size() / columns_ != rows_ ||
        profile.variances.size() % columns_ != 0)
        throw usage_error("a variance profile of {} x {} classes has {} variances: give one for each pair", rows_,
                          columns_, profile.variances.size());
    unit_ = 0.0;
    for (const double variance : profile.variances) {
        if (!(variance >= 0.0 && std::isfinite(variance)))
            throw usage_error("a variance of a profile is {} (it must be a number of at least 0): correct it",
                              variance);
        unit_ = std::max(unit_, variance);
    }
    if (!(unit_ > 1e-280 && unit_ < 1e280))
        throw usage_error(
            "the largest variance of a profile is {} (outside 1e-280 to 1e280 nothing is known): scale it", unit_);
    row_root_ = weight_roots(std::move(profile.row_weights), rows_, "row weights");
    column_root_ = weight_roots(std::move(profile.column_weights), columns_, "column weights");
    for (double& root : row_root_) root *= std::sqrt(beta_);
    symmetric_ = std::move(profile.variances);
    for (std::size_t a = 0; a < rows_; ++a)
        for (std::size_t b = 0; b < columns_; ++b)
            symmetric_[a * columns_ + b] *= row_root_[a] / unit_ * column_root_[b];
    edge_ = find_edge();
    sample_edge();
}

// Solves x - K y = f, y - K^T x = g with K_ab = X_a S_ab Y_b / z of `scale`, by conjugate gradients for
// (1 - K K^T) x = f + K g. Of complex numbers the products are bilinear, as the matrix is symmetric and not Hermitian.
// False where the matrix is not positive (real, below the edge) or the iteration breaks down.
template <class T>
bool ProfileLaw::linear(const Solution<T>& scale, T z, const Solution<T>& target, Solution<T>& found) const {
    const auto by_rows = [&](std::vector<T> y) {
        for (std::size_t b = 0; b < columns_; ++b) y[b] *= scale.right[b] / column_root_[b];
        std::vector<T> x = rows_times(y);
        for (std::size_t a = 0; a < rows_; ++a) x[a] *= scale.left[a] / (row_root_[a] * z);
        return x;
    };
    const auto by_columns = [&](std::vector<T> x) {
        for (std::size_t a = 0; a < rows_; ++a) x[a] *= scale.left[a] / row_root_[a];
        std::vector<T> y = columns_times(x);
        for (std::size_t b = 0; b < columns_; ++b) y[b] *= scale.right[b] / (column_root_[b] * z);
        return y;
    };
    std::vector<T> rest = by_rows(target.right);
    for (std::size_t a = 0; a < rows_; ++a) rest[a] += target.left[a];
    std::vector<T> direction = rest;
    found.left.assign(rows_, T(0));
    T square = bilinear(rest, rest);
    const double enough = 1e-32 * abs(square);
    for (std::size_t step = 0; step < 2 * rows_ + 100 && abs(square) > enough; ++step) {
        const std::vector<T> crossed = by_rows(by_columns(direction));
        std::vector<T> image(rows_);
        for (std::size_t a = 0; a < rows_; ++a) image[a] = direction[a] - crossed[a];
        const T curvature = bilinear(direction, image);
        if constexpr (std::is_same_v<T, double>) {
            if (!(curvature > 0.0)) return false;
        } else {
            if (!(abs(curvature) > 1e-14 * abs(bilinear(direction, direction)))) return false;
        }
        const T length = square / curvature;
        for (std::size_t a = 0; a < rows_; ++a) {
            found.left[a] += length * direction[a];
            rest[a] -= length * image[a];
        }
        const T next = bilinear(rest, rest);
        const T turn = next / square;
        square = next;
        for (std::size_t a = 0; a < rows_; ++a) direction[a] = rest[a] + turn * direction[a];
    }
    found.right = by_columns(found.left);
    for (std::size_t b = 0; b < columns_; ++b) found.right[b] += target.right[b];
    return true;
}

// The linear equations are those of the step divided by the values that one round of the equation gives, which makes
// them symmetric.
template <class T>
bool ProfileLaw::newton(T z, Solution<T>& at) const {
    double previous = std::numeric_limits<double>::infinity();
    Solution<T> round{std::vector<T>(rows_), std::vector<T>(columns_)};
    Solution<T> target = round;
    Solution<T> step;
    for (int iteration = 0; iteration < 100; ++iteration) {
        const std::vector<T> row_energy = rows_times(at.right);
        const std::vector<T> column_energy = columns_times(at.left);
        const auto once = [&](const std::vector<double>& roots, const std::vector<T>& energy, const std::vector<T>& now,
                              std::vector<T>& next, std::vector<T>& difference) {
            for (std::size_t i = 0; i < roots.size(); ++i) {
                const T below = roots[i] - energy[i] / z;
                if (!admissible(below)) return false;
                next[i] = roots[i] * roots[i] / below;
                difference[i] = roots[i] * (next[i] - now[i]) / next[i];
            }
            return true;
        };
        if (!once(row_root_, row_energy, at.left, round.left, target.left) ||
            !once(column_root_, column_energy, at.right, round.right, target.right) || !linear(round, z, target, step))
            return false;
        double largest = 0.0;
        const auto move = [&](const std::vector<double>& roots, const std::vector<T>& scale,
                              const std::vector<T>& change, std::vector<T>& now) {
            for (std::size_t i = 0; i < roots.size(); ++i) {
                const T part = scale[i] / roots[i] * change[i];
                now[i] += part;
                largest = std::max(largest, abs(part) / abs(now[i]));
            }
        };
        move(row_root_, round.left, step.left, at.left);
        move(column_root_, round.right, step.right, at.right);
        if (!std::isfinite(largest)) return false;
        // Steps that no longer shrink are rounding errors.
        if (largest <= 1e-15 || (largest < 1e-7 && largest > 0.5 * previous)) return true;
        previous = largest;
    }
    return false;
}

bool ProfileLaw::solve(double z, Point& point) const {
    point.z = z;
    point.at = start();
    if (!newton(z, point.at)) return false;
    // (r - X) / z in a form without cancellation, from the sums that the equation has at the solution.
    Solution<double> target{rows_times(point.at.right), columns_times(point.at.left)};
    for (std::size_t a = 0; a < rows_; ++a) target.left[a] *= -point.at.left[a] / row_root_[a] / z / z;
    for (std::size_t b = 0; b < columns_; ++b) target.right[b] *= -point.at.right[b] / column_root_[b] / z / z;
    if (!linear(point.at, z, target, point.slope)) return false;
    for (std::size_t a = 0; a < rows_; ++a) point.slope.left[a] *= point.at.left[a] / row_root_[a];
    for (std::size_t b = 0; b < columns_; ++b) point.slope.right[b] *= point.at.right[b] / column_root_[b];
    point.fall = bilinear(column_root_, target.right) / bilinear(column_root_, point.slope.right);
    return point.fall > 0.0;
}

// The square of the fall is nearly linear in 1/z, exactly so for white noise with n = d, and has a simple zero at the
// edge: secant steps from above, with bisection where they leave what is known.
double ProfileLaw::find_edge() const {
    const auto largest = [](const std::vector<double>& roots, const std::vector<double>& sums) {
        double most = 0.0;
        for (std::size_t i = 0; i < roots.size(); ++i) most = std::max(most, sums[i] / roots[i]);
        return most;
    };
    const double row_most = largest(row_root_, rows_times(column_root_));
    const double column_most = largest(column_root_, columns_times(row_root_));
    const double bound = std::pow(std::sqrt(row_most) + std::sqrt(column_most), 2);  // at least the edge
    double outside = 1.0 / std::max(row_most, column_most);                          // 1/z of a point below it
    Point point;
    const auto square_of_fall = [&](double inverse) {
        return solve(1.0 / inverse, point) ? point.fall * point.fall : -1.0;
    };
    double far = 1.0 / (1.5 * bound);
    double near = 1.0 / (1.1 * bound);
    double far_value = square_of_fall(far);
    double near_value = square_of_fall(near);
    for (int iteration = 0; iteration < 200; ++iteration) {
        const double secant = near + near_value * (near - far) / (far_value - near_value);
        if (far_value * near_value < 1e-18 || outside - near <= 4e-16 * near)
            return 1.0 / (secant > near && secant < outside ? secant : near);
        const double next = secant > near && secant < outside && iteration % 3 != 2 ? near + 0.999 * (secant - near)
                                                                                    : 0.5 * (near + outside);
        const double value = square_of_fall(next);
        if (value < 0.0 || !(value < near_value)) {
            outside = next;
        } else {
            far = near;
            far_value = near_value;
            near = next;
            near_value = value;
        }
    }
    return 1.0 / near;
}

ProfileLaw::Point ProfileLaw::above(double s) const {
    Point point;
    if (!solve(edge_ * (1.0 + s * s), point))
        throw usage_error(
            "the law of this variance profile has no solution at {} times its edge (rounding): scale the variances",
            1.0 + s * s);
    return point;
}

// Extrapolates f, smooth in s, from s = h, 2h, .. to 0 by the polynomial through `points` of them.
template <class Function>
double ProfileLaw::at_edge(Function f, std::size_t points) const {
    double sum = 0.0;
    double binomial = 1.0;
    for (std::size_t j = 1; j <= points; ++j) {
        binomial *= static_cast<double>(points + 1 - j) / static_cast<double>(j);
        sum += (j % 2 == 1 ? binomial : -binomial) * f(near_edge_[j - 1]);
    }
    return sum;
}

void ProfileLaw::sample_edge() {
    const auto mean = [&](const Point& point) { return bilinear(column_root_, point.at.right); };
    std::vector<Point> best;
    double least = std::numeric_limits<double>::infinity();
    for (double h = 0.02; h > 1e-4; h *= 0.4) {
        near_edge_.clear();
        for (std::size_t j = 1; j <= edge_points; ++j) near_edge_.push_back(above(static_cast<double>(j) * h));
        const double difference = abs(at_edge(mean, edge_points) - at_edge(mean, edge_points - 1));
        if (difference < least) {
            least = difference;
            best = near_edge_;
        }
        if (difference < 1e-10) break;
    }
    near_edge_ = std::move(best);
}

SpikeDirection ProfileLaw::checked(const SpikeDirection& direction) const {
    SpikeDirection result = direction;
    if (result.left.empty())
        for (const double root : row_root_) result.left.push_back(root * root / beta_);
    if (result.right.empty())
        for (const double root : column_root_) result.right.push_back(root * root);
    require_fractions(result.left, rows_, "squared left entries of a spike");
    require_fractions(result.right, columns_, "squared right entries of a spike");
    return result;
}

ProfileLaw::Seen ProfileLaw::seen(const Point& point, const SpikeDirection& direction) const {
    Seen result;
    for (std::size_t a = 0; a < rows_; ++a) {
        result.left += direction.left[a] / row_root_[a] * point.at.left[a];
        result.left_slope += direction.left[a] / row_root_[a] * point.slope.left[a];
    }
    for (std::size_t b = 0; b < columns_; ++b) {
        result.right += direction.right[b] / column_root_[b] * point.at.right[b];
        result.right_slope += direction.right[b] / column_root_[b] * point.slope.right[b];
    }
    return result;
}

double ProfileLaw::threshold(const SpikeDirection& direction) const {
    const auto inverse = [&](const Point& point) {
        const Seen at = seen(point, direction);
        return at.left * at.right;
    };
    return std::sqrt(edge_ / at_edge(inverse, edge_points));
}

SignalStrength ProfileLaw::detection_threshold(const SpikeDirection& direction) const {
    return {threshold(checked(direction)) * std::sqrt(unit_)};
}

double ProfileLaw::tracy_widom_scale() const {
    const SpikeDirection even = checked({});
    // The density is c sqrt(edge - x) / pi, where c is the slope of m in sqrt(z - edge).
    const double c = at_edge(
        [&](const Point& point) {
            const Seen at = seen(point, even);
            return 2.0 * std::sqrt(point.z - edge_) * (at.left / point.z - at.left_slope) / point.z;
        },
        edge_points);
    return std::cbrt(beta_ * c * beta_ * c) / unit_;
}

// The prediction for a spike whose outlier is at z, outside the bulk.
SpikePrediction ProfileLaw::prediction(SignalStrength strength, double z, const Seen& at) const {
    const double c = strength.value / std::sqrt(unit_);
    const double excess = -z * (at.left_slope / at.left + at.right_slope / at.right);
    return {.strength = strength,
            .detectable = true,
            .outlier = {z * unit_},
            .stieltjes_left = -at.left / (z * unit_),
            .stieltjes_right = -at.right / (z * unit_),
            .d_transform = 1.0 / (c * c * unit_),
            .d_transform_derivative = -1.0 / (c * c * unit_) * (1.0 + excess) / (z * unit_),
            .overlap_left = {std::min(1.0, at.left / (1.0 + excess))},
            .overlap_right = {std::min(1.0, at.right / (1.0 + excess))},
            .residual = {std::sqrt(z * unit_) * excess / (1.0 + excess)}};
}

SpikePrediction ProfileLaw::spike(SignalStrength strength, const SpikeDirection& direction) const {
    const SpikeDirection known = checked(direction);
    const double limit = threshold(known);
    const double c = strength.value / std::sqrt(unit_);
    if (!(c >= 0.0 && c < 1e6 * limit))
        throw usage_error(
            "strength {} is not usable (it must be from 0 up to 1e6 detection thresholds, {:.3g}): give one in this "
            "range",
            strength.value, 1e6 * limit * std::sqrt(unit_));
    if (c <= limit) {
        const double left = at_edge([&](const Point& point) { return seen(point, known).left; }, edge_points);
        return {.strength = strength,
                .outlier = bulk_edge(),
                .stieltjes_left = -left / (edge_ * unit_),
                .stieltjes_right = -1.0 / (limit * limit * left * unit_),
                .d_transform = 1.0 / (limit * limit * unit_),
                .d_transform_derivative = -std::numeric_limits<double>::infinity(),
                .residual = {std::sqrt(edge_ * unit_)}};
    }
    const double ratio = c / limit;
    const double s = increasing_root(
        [&](double trial) {
            const Point point = above(trial);
            const Seen at = seen(point, known);
            const double rise = -(at.left_slope / at.left + at.right_slope / at.right);
            return ValueAndSlope{std::log(point.z / (at.left * at.right * c * c)),
                                 (1.0 / point.z + rise) * 2.0 * edge_ * trial * trial};
        },
        0.5 * (ratio - 1.0 / ratio), 0.0, std::numeric_limits<double>::infinity());
    const Point found = above(s);
    return prediction(strength, found.z, seen(found, known));
}

SignalStrength ProfileLaw::strength_of(Eigenvalue outlier, const SpikeDirection& direction) const {
    const SpikeDirection known = checked(direction);
    const double ratio = outlier.value / (edge_ * unit_);
    if (!(ratio >= 1.0 && ratio < 1e12))
        throw usage_error(
            "eigenvalue {} is not usable here (it lies below the bulk edge {}, or above 1e12 times the edge): give one "
            "at or above the edge",
            outlier.value, edge_ * unit_);
    if (ratio < 1.0 + 1e-12) return {threshold(known) * std::sqrt(unit_)};
    const Point point = above(std::sqrt(ratio - 1.0));
    const Seen at = seen(point, known);
    return {std::sqrt(point.z / (at.left * at.right) * unit_)};
}

// Follows the solution from far above in the upper half plane, where 1/z is close, down to z. A solution of Newton's
// method is the right one when all transforms lie in the upper half plane.
ProfileLaw::Solution<std::complex<double>> ProfileLaw::solve(Complex z) const {
    const auto transforms_above = [&](const Solution<Complex>& at, Complex point) {
        for (const auto* side : {&at.left, &at.right})
            for (const Complex& value : *side)
                if (!((-value / point).imag() > -1e-13 * abs(value / point))) return false;
        return true;
    };
    Solution<Complex> at{{row_root_.begin(), row_root_.end()}, {column_root_.begin(), column_root_.end()}};
    double height = 16.0 * edge_ + z.imag();
    double shrink = 0.25;
    const double least = std::max(z.imag(), 1e-9 * edge_);
    while (height > least && shrink < 0.99) {
        const double lower = std::max(least, height * shrink);
        Solution<Complex> next = at;
        if (newton(Complex(z.real(), lower), next) && transforms_above(next, Complex(z.real(), lower))) {
            at = std::move(next);
            height = lower;
        } else {
            shrink = std::sqrt(shrink);
        }
    }
    Solution<Complex> last = at;
    return newton(z, last) && transforms_above(last, z) ? last : at;
}

StieltjesPair ProfileLaw::stieltjes(std::complex<double> z) const {
    if (!(z.imag() > 0.0 && admissible(z)))
        throw usage_error("Stieltjes transforms at {} + {} i are not defined here: give a positive imaginary part",
                          z.real(), z.imag());
    z /= unit_;
    const Solution<Complex> at = solve(z);
    Complex left = 0.0;
    Complex right = 0.0;
    for (std::size_t a = 0; a < rows_; ++a) left += row_root_[a] * at.left[a];
    for (std::size_t b = 0; b < columns_; ++b) right += column_root_[b] * at.right[b];
    return {-left / (beta_ * z * unit_), -right / (z * unit_)};
}

double ProfileLaw::density(Eigenvalue x) const {
    if (!(x.value > 0.0)) throw usage_error("no density at {}: give an eigenvalue above 0", x.value);
    const double relative = x.value / unit_;
    if (relative >= edge_) return 0.0;
    const Solution<Complex> at = solve(Complex(relative, 0.0));
    double sum = 0.0;
    for (std::size_t a = 0; a < rows_; ++a) sum -= row_root_[a] * at.left[a].imag();
    return std::max(0.0, sum / (beta_ * relative * unit_ * std::numbers::pi));
}

// For ProfileGaps, which is compiled apart.
template bool ProfileLaw::linear(const Solution<Complex>& scale, Complex z, const Solution<Complex>& target,
                                 Solution<Complex>& found) const;

}  // namespace spiked::theory
