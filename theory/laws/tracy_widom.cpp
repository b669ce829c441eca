#include "theory/laws/tracy_widom.hpp"

#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/airy.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/runtime/error.hpp"
#include "theory/laws/root.hpp"

namespace spiked::theory {
namespace {

constexpr std::size_t node_count = 64;
constexpr double left_end = -10.0;
constexpr double complex_left_end = -8.0;
/// Left of this point the smallest eigenvalues of 1 - K approach the rounding error of a double.
constexpr double extended_below = -4.0;
constexpr double smallest_tail = 1e-100;

template <class Real>
struct Nodes {
    std::array<Real, node_count> position{};  ///< in (0, 1)
    std::array<Real, node_count> weight{};
};

template <class Real>
const Nodes<Real>& nodes() {
    static const Nodes<Real> made = [] {
        using Rule = boost::math::quadrature::gauss<Real, node_count>;
        Nodes<Real> result;
        for (std::size_t i = 0; i < node_count / 2; ++i) {
            const Real x = Rule::abscissa()[i];
            const Real w = Rule::weights()[i] / 2;
            result.position[2 * i] = (1 - x) / 2;
            result.position[2 * i + 1] = (1 + x) / 2;
            result.weight[2 * i] = result.weight[2 * i + 1] = w;
        }
        return result;
    }();
    return made;
}

/// The square of a symmetric matrix.
template <class Real>
std::vector<Real> squared(const std::vector<Real>& kernel) {
    std::vector<Real> square(kernel.size(), Real(0));
    for (std::size_t i = 0; i < node_count; ++i)
        for (std::size_t k = 0; k < node_count; ++k)
            for (std::size_t j = 0; j < node_count; ++j)
                square[i * node_count + j] += kernel[i * node_count + k] * kernel[k * node_count + j];
    return square;
}

/// log F1(s) or log F2(s), with relative accuracy also when it is tiny.
template <class Real>
Real log_determinant(Real s, Field field) {
    const Nodes<Real>& rule = nodes<Real>();
    // The kernel is negligible where (x + y)/2 exceeds about 12; in the worst corner that is half an interval above s.
    const Real length = std::max(Real(16), 2 * (12 - s));
    std::vector<Real> kernel(node_count * node_count);
    for (std::size_t i = 0; i < node_count; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const Real middle = s + length * (rule.position[i] + rule.position[j]) / 2;
            const Real weight = length * std::sqrt(rule.weight[i] * rule.weight[j]);
            // Beyond 100 the Airy function is below the smallest double.
            const Real value = middle > 100 ? Real(0) : weight * boost::math::airy_ai(middle) / 2;
            kernel[i * node_count + j] = kernel[j * node_count + i] = value;
        }
    }
    if (field == Field::complex) kernel = squared(kernel);
    // Gaussian elimination of 1 - K, carried out on K: the pivots are 1 - k, and log1p is accurate when k is far
    // below 1. The eigenvalues of K lie inside (-1, 1), so 1 - K is positive definite and needs no pivoting.
    Real logarithm = 0;
    for (std::size_t p = 0; p < node_count; ++p) {
        const Real pivot = kernel[p * node_count + p];
        logarithm += std::log1p(-pivot);
        for (std::size_t i = p + 1; i < node_count; ++i) {
            const Real factor = kernel[i * node_count + p] / (1 - pivot);
            if (factor == 0) continue;
            for (std::size_t j = p + 1; j < node_count; ++j)
                kernel[i * node_count + j] += factor * kernel[p * node_count + j];
        }
    }
    return logarithm;
}

double log_cdf(double s, Field field) {
    if (s >= extended_below) return log_determinant(s, field);
    if (s >= (field == Field::real ? left_end : complex_left_end))
        return static_cast<double>(log_determinant<long double>(s, field));
    constexpr double zeta_slope = -0.16542114370045092;
    const double a = -s;
    // log of 2^(1/24) e^(zeta'(-1)) |s|^(-1/8) exp(-|s|^3/12), for real numbers of
    // 2^(-11/48) e^(zeta'(-1)/2) |s|^(-1/16) exp(-|s|^3/24 - |s|^(3/2) / (3 sqrt 2))
    if (field == Field::complex) return -a * a * a / 12.0 - std::log(a) / 8.0 + std::log(2.0) / 24.0 + zeta_slope;
    return -a * a * a / 24.0 - a * std::sqrt(a) / (3.0 * std::sqrt(2.0)) - std::log(a) / 16.0 -
           11.0 / 48.0 * std::log(2.0) + zeta_slope / 2.0;
}

void require_fraction(double value, const char* what) {
    if (!(value > 0.0 && value < 1.0))
        throw usage_error(
            "{} {} has no Tracy-Widom quantile (it must lie strictly between 0 and 1): give such a number", what,
            value);
}

/// The zero of an increasing function.
template <class Function>
double solve(Function f, double low, double high) {
    return bracketed_root(f, low, high,
                          [](double a, double b) { return std::abs(a - b) <= 1e-14 * std::max(1.0, std::abs(a)); });
}

}  // namespace

double tracy_widom_cdf(double s, Field field) { return std::exp(log_cdf(s, field)); }

double tracy_widom_survival(double s, Field field) { return -std::expm1(log_cdf(s, field)); }

double tracy_widom_quantile(double probability, Field field) {
    require_fraction(probability, "probability");
    if (probability > 0.5) return tracy_widom_upper_quantile(1.0 - probability, field);
    const double target = std::log(probability);
    double low = -4.0;
    while (log_cdf(low, field) > target) low *= 2.0;
    return solve([&](double s) { return log_cdf(s, field) - target; }, low, low == -4.0 ? 0.0 : low / 2.0);
}

double tracy_widom_upper_quantile(double tail, Field field) {
    require_fraction(tail, "tail");
    if (tail < smallest_tail)
        throw usage_error(
            "tail {} has no Tracy-Widom quantile here (tails below {} are not supported): give a larger one", tail,
            smallest_tail);
    if (tail > 0.5) return tracy_widom_quantile(1.0 - tail, field);
    const double target = std::log(tail);
    double high = 4.0;
    while (std::log(tracy_widom_survival(high, field)) > target) high *= 2.0;
    return solve([&](double s) { return target - std::log(tracy_widom_survival(s, field)); },
                 high == 4.0 ? -2.0 : high / 2.0, high);
}

double edge_points_above(double s, Field field) {
    if (s > 100.0) return 0.0;
    const double airy = boost::math::airy_ai(s);
    const double slope = boost::math::airy_ai_prime(s);
    // This part suffers from cancellation in the far right tail, where it is negligible for real noise.
    const double unitary = std::max(0.0, (2.0 * s * s * airy * airy - 2.0 * s * slope * slope - airy * slope) / 3.0);
    if (field == Field::complex) return unitary;
    const Nodes<double>& rule = nodes<double>();
    const double length = std::max(16.0, 14.0 - s);
    double tail = 0.0;
    for (std::size_t i = 0; i < node_count; ++i) {
        const double x = s + length * rule.position[i];
        if (x < 100.0) tail += length * rule.weight[i] * boost::math::airy_ai(x);
    }
    return unitary + tail / 2.0 - tail * tail / 4.0;
}

}  // namespace spiked::theory
