#include "theory/laws/bulk_distribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>

#include "theory/laws/root.hpp"
#include "theory/laws/support_gaps.hpp"

namespace spiked::theory {
namespace {

constexpr double pi = std::numbers::pi;

/// A root to the last bits of the unknown.
template <class Function>
double root_to_last_bits(Function f, double low, double high) {
    return bracketed_root(f, low, high, within(4e-16), 200);
}

}  // namespace

BulkDistribution::BulkDistribution(const SeparableLaw& law)
    : row_(law.row()),
      column_(law.column()),
      beta_(law.aspect().value()),
      rank_gap_(column_.positive_weight - beta_ * row_.positive_weight),
      scale_(law.row().largest() * law.column().largest()),
      mass_at_zero_(std::max(0.0, 1.0 - std::min(row_.positive_weight, column_.positive_weight / beta_))),
      mean_(law.row().mean() * law.column().mean()),
      lower_(0.0),
      upper_(law.bulk_edge().value / scale_) {
    if (std::abs(rank_gap_) <= 4e-15 * std::max(column_.positive_weight, beta_ * row_.positive_weight)) rank_gap_ = 0.0;
    if (rank_gap_ == 0.0) return;
    const SupportGaps below(law, SupportGaps::Which::below_bulk);
    if (!below.gaps().empty()) lower_ = below.gaps().front().upper.value / scale_;
}

BulkDistribution::Sums BulkDistribution::sums(const RelativeAtoms& side, Complex m) {
    double sum[8] = {};
    for (std::size_t i = 0; i < side.value.size(); ++i) {
        const double x = side.value[i];
        if (x == 0.0) continue;
        const double real = 1.0 + x * m.real();
        const double imag = x * m.imag();
        const double scale = 1.0 / (real * real + imag * imag);
        const double a = real * scale;  // 1 / (1 + x M) = a - i b
        const double b = imag * scale;
        const double w = side.weight[i];
        const double wx = w * x;
        const double square = (a - b) * (a + b);
        const double twice = 2.0 * a * b;
        sum[0] += w * a;
        sum[1] -= w * b;
        sum[2] += wx * a;
        sum[3] -= wx * b;
        sum[4] += wx * square;
        sum[5] -= wx * twice;
        sum[6] += wx * x * square;
        sum[7] -= wx * x * twice;
    }
    return {{sum[0], sum[1]}, {sum[2], sum[3]}, {sum[4], sum[5]}, {sum[6], sum[7]}};
}

// M2 = -(1/z) sum v y / (1 + y M1), then M1 = -(beta/z) sum w x / (1 + x M2). Newton solves the same equation as
// sum v / (1 + y M1) - beta sum w / (1 + x M2) = (rank of B - rank of A) / d. Both sums are small where the support
// reaches zero, and there the first form would lose all its digits to rounding.
BulkDistribution::Round BulkDistribution::round(Complex z, Complex column) const {
    const Sums right = sums(column_, column);
    const Complex row = -right.first / z;
    const Sums left = sums(row_, row);
    const Complex residual = right.plain - beta_ * left.plain - rank_gap_;
    const Complex derivative = -right.mixed + beta_ * left.mixed * (right.second / z);
    return {-beta_ * left.first / z, beta_ * (left.second / z) * (right.second / z), -residual / derivative, row,
            right.plain};
}

// The round maps the half plane Im M > 0, Im zM > 0 into itself. It has one fixed point there, and that is the
// solution; on the real axis outside the support the fixed point is real and attracting (Denjoy and Wolff). These two
// conditions therefore identify the solution, however a candidate was found.
bool BulkDistribution::newton(Complex z, Complex& column) const {
    Complex m = column;
    double last = std::numeric_limits<double>::infinity();
    for (int iteration = 0; iteration < 60; ++iteration) {
        const Round now = round(z, m);
        const Complex step = now.step;
        if (!std::isfinite(step.real()) || !std::isfinite(step.imag())) return false;
        const double size = std::abs(step) / std::abs(m);
        m += step;
        if (size <= 1e-15 || (size < 1e-7 && size >= 0.5 * last)) {
            // Where M2 = 0, Newton's equation holds although M1 is not a fixed point.
            if (!(std::abs(now.column - m) <= 1e-4 * std::abs(m))) return false;
            if (z.imag() > 0.0) {
                if (!(m.imag() > 0.0 && (z * m).imag() >= 0.0)) return false;
                column = m;
                return true;
            }
            // On the real axis the complex conjugate is a solution too.
            column = {m.real(), std::abs(m.imag())};
            if (column.imag() > 1e-9 * std::abs(m)) return true;
            if (!(std::abs(now.slope) <= 1.0)) return false;
            if (column.imag() <= 1e-13 * std::abs(m)) column.imag(0.0);
            return true;
        }
        last = size;
    }
    return false;
}

BulkDistribution::Solution BulkDistribution::solve(Complex z, const Complex* near) const {
    const auto finish = [&](Complex column) {
        const Round last = round(z, column);
        return Solution{column, last.row, last.plain};
    };
    if (near != nullptr && near->imag() > 0.0) {
        Complex column = *near;
        if (newton(z, column)) return finish(column);
    }
    // Damped rounds converge quickly inside the bulk and away from the real axis.
    Complex column = Complex(0.0, std::sqrt(beta_)) / std::sqrt(z);
    for (int attempt = 0; attempt < 4; ++attempt) {
        for (int iteration = 0; iteration < 20; ++iteration) column = 0.5 * (column + round(z, column).column);
        Complex candidate = column;
        if (newton(z, candidate)) return finish(candidate);
    }
    // Otherwise the solution is continued from far above the real axis, with shorter steps whenever Newton fails.
    const double start = 10.0 * std::max(upper_, std::abs(z));
    double height = start;
    double factor = 0.5;
    column = -beta_ / Complex(z.real(), height);
    for (int iteration = 0; iteration < 40; ++iteration)
        column = 0.5 * (column + round({z.real(), height}, column).column);
    while (true) {
        double next = z.imag() + (height - z.imag()) * factor;
        if (next - z.imag() < 1e-12 * start) next = z.imag();
        Complex candidate = column;
        if (newton({z.real(), next}, candidate)) {
            column = candidate;
            height = next;
            if (height == z.imag()) return finish(column);
            factor = std::max(0.1, factor * factor);
        } else {
            factor = std::sqrt(factor);
            // z is within rounding of an edge, and the last height is as close to it as doubles allow.
            if (factor > 0.999 && height - z.imag() < 1e-9 * start) return finish(column);
            if (factor > 0.99999)
                throw usage_error(
                    "the density of this noise near {:.6g} cannot be computed in double precision (eigenvalues, "
                    "weights or sides are too different): make the spectra narrower, with fewer atoms, or the sides "
                    "more alike",
                    z.real() * scale_);
        }
    }
}

/// Below this eigenvalue the equations divide by numbers with few bits. The law has a mass of at most 1e-150 there.
constexpr double least_normal = std::numeric_limits<double>::min();

// The density is Im m1 / pi, with m1 = -(1 + t / beta) / x and 1 + t = sum v / (1 + y M1); `plain` is t.
double BulkDistribution::density_of(double x, const Solution& at) const {
    return std::max(0.0, -at.plain.imag() / (pi * beta_ * x));
}

// With L(z) = int log(x - z) = log(-z) + sum w log(1 + x M2) + (1/beta) sum v log(1 + y M1) + z M1 M2 / beta, the
// self-consistent equations state that L is stationary in M1 and M2, and dL/dz = -m1; on the real axis Im L = -pi cdf.
double BulkDistribution::survival_of(const Solution& at) const {
    double row_sum = 0.0;
    for (std::size_t i = 0; i < row_.value.size(); ++i)
        row_sum += row_.weight[i] * std::atan2(row_.value[i] * at.row.imag(), 1.0 + row_.value[i] * at.row.real());
    double column_sum = 0.0;
    for (std::size_t j = 0; j < column_.value.size(); ++j)
        column_sum += column_.weight[j] *
                      std::atan2(column_.value[j] * at.column.imag(), 1.0 + column_.value[j] * at.column.real());
    const double survival = (row_sum + (column_sum + at.plain.imag()) / beta_) / pi;
    return std::clamp(survival, 0.0, 1.0 - mass_at_zero_);
}

double BulkDistribution::density(Eigenvalue x) const {
    const double scaled = x.value / scale_;
    if (scaled == 0.0 && lower_ == 0.0) return std::numeric_limits<double>::infinity();
    if (!inside(scaled)) return 0.0;
    const double normal = std::max(scaled, least_normal);
    return density_of(normal, solve(normal, nullptr)) / scale_;
}

double BulkDistribution::survival(Eigenvalue x) const {
    const double scaled = x.value / scale_;
    if (!(scaled >= 0.0)) return 1.0;
    if (scaled <= lower_ || scaled < least_normal) return 1.0 - mass_at_zero_;
    if (scaled >= upper_) return 0.0;
    return survival_of(solve(scaled, nullptr));
}

double BulkDistribution::cdf(Eigenvalue x) const { return x.value >= 0.0 ? 1.0 - survival(x) : 0.0; }

Eigenvalue BulkDistribution::quantile(double probability) const {
    if (!(probability >= 0.0 && probability <= 1.0))
        throw usage_error("probability {} is not usable (outside 0 to 1): give a number from 0 to 1", probability);
    if (probability <= mass_at_zero_) return mass_at_zero_ > 0.0 ? Eigenvalue{0.0} : lower_edge();
    if (probability == 1.0) return upper_edge();
    const double tail = 1.0 - probability;
    // As a function of this angle the law is smooth at both edges, also at a lower edge of 0.
    const auto position = [&](double angle) {
        const double sine = std::sin(angle / 2.0);
        const double cosine = std::cos(angle / 2.0);
        return upper_ * sine * sine + lower_ * cosine * cosine;
    };
    std::optional<Complex> last;
    const double angle = root_to_last_bits(
        [&](double trial) {
            if (trial <= 0.0) return -probability;
            if (trial >= pi) return tail;
            const double x = position(trial);
            const Solution at = solve(x, last ? &*last : nullptr);
            if (at.column.imag() > 0.0) last = at.column;
            // The offset keeps the rounding of a sum of angles from deciding on which side of a gap the quantile lies.
            return tail - survival_of(at) + 2e-15;
        },
        0.0, pi);
    return {position(angle) * scale_};
}

std::vector<BulkPoint> BulkDistribution::curve(std::size_t count) const {
    if (count < 2)
        throw usage_error("curve of {} points is not usable (it goes from edge to edge): ask for 2 or more", count);
    std::vector<BulkPoint> points(count);
    std::optional<Complex> last;
    for (std::size_t i = count; i-- > 0;) {
        double angle = pi * static_cast<double>(i) / static_cast<double>(count - 1);
        if (i == 0 && lower_ == 0.0) angle = 0.5 * pi / static_cast<double>(count - 1);
        const double sine = std::sin(angle / 2.0);
        const double cosine = std::cos(angle / 2.0);
        const double x = upper_ * sine * sine + lower_ * cosine * cosine;
        points[i].x = {x * scale_};
        if (!inside(x)) {
            points[i].cdf = i == 0 ? mass_at_zero_ : 1.0;
            continue;
        }
        const Solution at = solve(x, last ? &*last : nullptr);
        if (at.column.imag() > 0.0) last = at.column;
        points[i].density = density_of(x, at) / scale_;
        points[i].cdf = 1.0 - survival_of(at);
    }
    return points;
}

StieltjesPair BulkDistribution::stieltjes(std::complex<double> z) const {
    const double size = std::abs(z) / scale_;
    if (!(z.imag() > 0.0 && size > 1e-250 && size < 1e250))
        throw usage_error(
            "z = {} + {}i is not usable here (Im z > 0, |z| within 1e-250 to 1e250 of the largest atoms): give such a "
            "z, or use the transforms of the law above the edge",
            z.real(), z.imag());
    const Solution at = solve(z / scale_, nullptr);
    // m = -(1/z) sum w / (1 + x M) is summed in this form, because near z = 0 the shorter form would cancel.
    const auto transform = [&](const RelativeAtoms& side, Complex m) {
        Complex sum;
        for (std::size_t i = 0; i < side.value.size(); ++i) sum += side.weight[i] / (1.0 + side.value[i] * m);
        return -sum / z;
    };
    return {transform(row_, at.row), transform(column_, at.column)};
}

}  // namespace spiked::theory
