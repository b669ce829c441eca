#include "estimators/causal/exact_functions.hpp"

#include <bit>
#include <cmath>

namespace spiked::estimators {
namespace {

constexpr double ln_2 = 0x1.62e42fefa39efp-1;
constexpr double square_root_of_two = 0x1.6a09e667f3bcdp+0;

/// x = fraction 2^exponent with 1 <= fraction < 2.
struct FloatParts {
    double fraction;
    int exponent;
};

FloatParts float_parts(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    return {std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL),
            static_cast<int>(bits >> 52 & 0x7FF) - 1023};
}

/// e^x for |x| <= ln 2 by its series.
double exp_near_zero(double x) {
    double sum = 1.0;
    for (int n = 20; n > 0; --n) sum = 1.0 + x / n * sum;
    return sum;
}

}  // namespace

double exact_exp(double x) {
    const double octaves = std::floor(x / ln_2);
    // ln 2 in two parts, the first of which has few enough bits that its product with a number of octaves is exact.
    constexpr double high = 0x1.62e42fefa0000p-1;
    constexpr double low = 0x1.cf79abc9e3b3ap-40;
    return std::ldexp(exp_near_zero((x - octaves * high) - octaves * low), static_cast<int>(octaves));
}

double exact_power_of_two(std::int32_t numerator, std::int32_t denominator) {
    std::int32_t whole = numerator / denominator;
    std::int32_t rest = numerator % denominator;
    if (rest < 0) {
        rest += denominator;
        --whole;
    }
    return std::ldexp(exp_near_zero(ln_2 * rest / denominator), whole);
}

double exact_log2(double x) {
    auto [fraction, exponent] = float_parts(x);
    if (fraction >= square_root_of_two) {
        fraction *= 0.5;
        ++exponent;
    }
    // ln f = 2 artanh((f - 1) / (f + 1)), whose argument is below .172.
    const double z = (fraction - 1.0) / (fraction + 1.0);
    double sum = 0.0;
    for (int n = 23; n > 0; n -= 2) sum = sum * (z * z) + 1.0 / n;
    return exponent + 2.0 * z * sum / ln_2;
}

int half_octave(double x) {
    const auto [fraction, exponent] = float_parts(x);
    return 2 * exponent + (fraction >= square_root_of_two ? 1 : 0);
}

}  // namespace spiked::estimators
