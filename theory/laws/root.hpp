#pragma once
#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

namespace spiked::theory {

/// A function value and its slope with respect to the logarithm of the unknown.
struct ValueAndSlope {
    double value = 0.0;
    double slope = 0.0;
};

/// The zero of an increasing function of one positive unknown, by Newton steps in the logarithm that stay inside a
/// bracket. Every evaluation tightens the bracket, so the method ends for any increasing function, including those with
/// flat parts and jumps. `f` maps t to ValueAndSlope; `guess` lies in [lower, upper], where lower may be 0 and upper
/// infinite. The relative error is about the square of `tolerance` for a smooth function, but is limited by the
/// rounding of f. Cost: one evaluation per step, usually 4 to 8.
template <class Function>
[[nodiscard]] double increasing_root(Function f, double guess, double lower, double upper, double tolerance = 1e-9) {
    constexpr double longest_step = 3.0;  // in log t, while one end of the bracket is open
    double t = guess;
    double previous = std::numeric_limits<double>::infinity();
    for (int iteration = 0; iteration < 400; ++iteration) {
        const ValueAndSlope now = f(t);
        if (now.value == 0.0) return t;
        (now.value < 0.0 ? lower : upper) = t;
        double step = now.slope > 0.0 ? -now.value / now.slope : std::copysign(longest_step, -now.value);
        step = std::clamp(step, -longest_step, longest_step);
        double next = t * std::exp(step);
        if (!(next > lower && next < upper)) {
            // Rounding errors near the root also lead here; the bracket is then already as narrow as possible.
            if (std::abs(step) <= tolerance) return std::clamp(next, lower, upper);
            if (lower > 0.0 && std::isfinite(upper)) {
                next = std::sqrt(lower) * std::sqrt(upper);
                if (!(next > lower && next < upper)) return t;
                step = std::log(next / t);
            }
        }
        if (std::abs(step) <= tolerance) return next;
        // Tiny steps that no longer shrink are rounding errors, not progress.
        if (std::abs(step) < 1e-6 && std::abs(step) > 0.5 * previous) return next;
        previous = std::abs(step);
        t = next;
    }
    return t;
}

/// The zero of a function that changes sign between `low` and `high` (Alefeld, Potra and Shi 1995): the midpoint of the
/// bracket when `narrow(low, high)` holds or when `evaluations` are used up.
template <class Function, class Narrow>
[[nodiscard]] double bracketed_root(Function f, double low, double high, Narrow narrow,
                                    std::uintmax_t evaluations = 100) {
    const auto ends = boost::math::tools::toms748_solve(f, low, high, narrow, evaluations);
    return 0.5 * (ends.first + ends.second);
}

/// A stopping criterion for bracketed_root: the ends differ by at most this fraction of the upper one.
[[nodiscard]] inline auto within(double tolerance) {
    return [tolerance](double low, double high) { return std::abs(high - low) <= tolerance * std::abs(high); };
}

}  // namespace spiked::theory
