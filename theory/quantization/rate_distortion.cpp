#include "theory/quantization/rate_distortion.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/runtime/error.hpp"
#include "theory/laws/root.hpp"

namespace spiked::theory {
namespace {

constexpr double lowest_rate = 0.01;
constexpr double highest_rate = 10.0;
constexpr double smallest_step = 1e-3;
constexpr double largest_step = 1e6;

template <class Real>
Real normal_density(Real x) {
    return std::exp(-x * x / Real{2}) / std::sqrt(Real{2} * std::numbers::pi_v<Real>);
}

void require_rate(double rate_bits) {
    if (!(rate_bits > 0.0) || !std::isfinite(rate_bits))
        throw usage_error(
            "rate of {} bits per entry is not usable (it must be finite and above 0): give a positive rate", rate_bits);
}

void require_distortion(double distortion) {
    if (!(distortion > 0.0) || !std::isfinite(distortion))
        throw usage_error(
            "distortion {} has no rate (it must be finite and above 0): give a mean squared error per unit variance",
            distortion);
}

/// Moments of the uniform mid-rise quantizer, whose levels u are counted in steps.
struct StaircaseSums {
    long double correlation = 0.0L;  ///< E[z u(z)]
    long double energy = 0.0L;       ///< E[u(z)^2]
    long double slope = 0.0L;        ///< d/dlog(step) of step * energy - correlation
};

StaircaseSums staircase_sums(long double step, int half) {
    // u increases by one at every threshold, and u^2 by 2 k at the k-th, so the sums by parts have terms of one sign.
    StaircaseSums sums{normal_density(0.0L), 0.25L, 0.25L};
    long double correlation_slope = 0.0L;
    for (int k = 1; k < half; ++k) {
        const long double threshold = k * step;
        const long double density = normal_density(threshold);
        sums.correlation += 2.0L * density;
        sums.energy += 2.0L * k * std::erfc(threshold / std::numbers::sqrt2_v<long double>);
        correlation_slope += 2.0L * threshold * k * density;
    }
    sums.slope = step * (sums.energy - correlation_slope);
    return sums;
}

/// Integrals over a bin of the normal density times powers of the distance from a reference point near its mass.
struct BinSums {
    double reference = 0.0;
    double mass = 0.0;
    double offset = 0.0;
    double offset_square = 0.0;
};

BinSums bin_sums(double lower, double upper) {
    using Rule = boost::math::quadrature::gauss<double, 10>;
    constexpr double widest_panel = 1.0;  // ten nodes give 20 digits on such a panel
    const double panels = std::ceil((upper - lower) / widest_panel);
    const double half = (upper - lower) / panels / 2.0;
    BinSums sums;
    sums.reference = (lower + std::min(upper, lower + widest_panel)) / 2.0;
    for (double panel = 0.0; panel < panels; panel += 1.0) {
        const double middle = lower + (2.0 * panel + 1.0) * half;
        const double before = sums.mass;
        const auto add = [&](double x, double weight) {
            const double mass = weight * half * normal_density(x);
            const double offset = x - sums.reference;
            sums.mass += mass;
            sums.offset += mass * offset;
            sums.offset_square += mass * offset * offset;
        };
        for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
            add(middle + half * Rule::abscissa()[i], Rule::weights()[i]);
            add(middle - half * Rule::abscissa()[i], Rule::weights()[i]);
        }
        if (sums.mass - before <= 1e-20 * sums.mass) break;
    }
    return sums;
}

struct EntropyAndDistortion {
    double entropy_bits = 0.0;
    double entropy_slope = 0.0;  ///< with respect to the logarithm of the step
    double distortion = 0.0;
};

EntropyAndDistortion entropy_and_distortion(double step, Staircase staircase) {
    EntropyAndDistortion sums;
    const auto add = [&](double lower, double upper, double copies) {
        const BinSums bin = bin_sums(lower, upper);
        if (bin.mass > 0.0) {
            const double bits = -std::log2(bin.mass);
            sums.entropy_bits += copies * bin.mass * bits;
            sums.entropy_slope += copies * bits * (upper * normal_density(upper) - lower * normal_density(lower));
            sums.distortion += copies * (bin.offset_square - bin.offset * bin.offset / bin.mass);
        }
        return bin.mass;
    };
    constexpr double negligible = 1e-22;
    double lower = 0.0;
    double bins = 0.0;
    if (staircase == Staircase::mid_tread) {
        lower = step / 2.0;
        // The bin around zero is integrated as two halves, and its mass is computed as 1 minus its tails.
        const BinSums half = bin_sums(0.0, lower);
        const double mass = std::erf(lower / std::numbers::sqrt2);
        const double bits = -std::log1p(-std::erfc(lower / std::numbers::sqrt2)) / std::numbers::ln2;
        sums.entropy_bits += mass * bits;
        sums.entropy_slope += bits * 2.0 * lower * normal_density(lower);
        sums.distortion +=
            2.0 * (half.offset_square + half.reference * (2.0 * half.offset + half.reference * half.mass));
    }
    const double first = lower;
    while (add(lower, lower + step, 2.0) > negligible) {
        bins += 1.0;
        lower = first + bins * step;
    }
    return sums;
}

}  // namespace

double shannon_distortion(double rate_bits) {
    require_rate(rate_bits);
    return std::exp2(-2.0 * rate_bits);
}

double water_filled_distortion(std::span<const NormalChannel> channels, double rate_bits) {
    require_rate(rate_bits);
    if (channels.empty()) throw usage_error("a source without channels has no distortion: give one or more");
    const bool white = std::ranges::all_of(channels, [](const NormalChannel& c) { return c.correlation == 0.0; });
    const std::size_t frequencies = white ? 1 : 128;
    std::vector<double> powers;  // of each channel at each frequency
    powers.reserve(channels.size() * frequencies);
    for (const auto& [variance, r] : channels) {
        if (!(variance >= 0.0) || !std::isfinite(variance) || !(std::abs(r) < 1.0))
            throw usage_error(
                "a channel has the variance {} and the correlation {}: give at least 0, and a number between -1 and 1",
                variance, r);
        for (std::size_t j = 0; j < frequencies; ++j) {
            const double angle = std::numbers::pi * (static_cast<double>(j) + 0.5) / static_cast<double>(frequencies);
            powers.push_back(variance * (1.0 - r * r) / (1.0 - 2.0 * r * std::cos(angle) + r * r));
        }
    }
    std::ranges::sort(powers, std::greater());
    // The first `count` powers are above the level, which is the mean error of each of them.
    const double bits = 2.0 * rate_bits * static_cast<double>(powers.size());
    double logarithms = 0.0;
    double level = 0.0;
    std::size_t count = 0;
    while (count < powers.size() && powers[count] > level) {
        logarithms += std::log2(powers[count]);
        ++count;
        level = std::exp2((logarithms - bits) / static_cast<double>(count));
    }
    double error = level * static_cast<double>(count);
    for (std::size_t i = count; i < powers.size(); ++i) error += powers[i];
    return error / static_cast<double>(powers.size());
}

double shannon_rate(double distortion) {
    require_distortion(distortion);
    return distortion < 1.0 ? -0.5 * std::log2(distortion) : 0.0;
}

UniformQuantizer uniform_quantizer_normal(int bits) {
    if (bits < 1 || bits > 8)
        throw usage_error("uniform quantizer of {} bits is not available (1 to 8 are): choose one of them", bits);
    const int half = 1 << (bits - 1);
    const double count = 2.0 * half;
    // The difference loses digits by rounding, of order distortion^(1/2), so it is taken before conversion to double.
    const auto derivative = [&](double step) -> ValueAndSlope {
        const StaircaseSums sums = staircase_sums(step, half);
        return {static_cast<double>(step * sums.energy - sums.correlation), static_cast<double>(sums.slope)};
    };
    UniformQuantizer quantizer;
    quantizer.step = increasing_root(derivative, 4.0 * std::sqrt(std::log(count)) / count, 0.0, 4.0);

    const long double step = quantizer.step;
    const StaircaseSums sums = staircase_sums(step, half);
    Codebook& book = quantizer.codebook;
    book.bits = bits;
    book.levels.resize(2 * static_cast<std::size_t>(half));
    book.probabilities.resize(book.levels.size());
    book.thresholds.resize(book.levels.size() - 1);
    long double entropy = 0.0L;
    const auto tail = [&](int k) {
        return k == half ? 0.0L : 0.5L * std::erfc(k * step / std::numbers::sqrt2_v<long double>);
    };
    for (int k = 0; k < half; ++k) {
        const long double probability = tail(k) - tail(k + 1);
        const std::size_t high = static_cast<std::size_t>(half + k);
        const std::size_t low = static_cast<std::size_t>(half - 1 - k);
        book.levels[high] = static_cast<double>((k + 0.5L) * step);
        book.levels[low] = -book.levels[high];
        book.probabilities[high] = book.probabilities[low] = static_cast<double>(probability);
        if (k > 0) {
            book.thresholds[high - 1] = static_cast<double>(k * step);
            book.thresholds[low] = -book.thresholds[high - 1];
        }
        entropy -= 2.0L * probability * std::log2(probability);
    }
    book.thresholds[static_cast<std::size_t>(half) - 1] = 0.0;
    book.distortion = static_cast<double>(1.0L - 2.0L * step * sums.correlation + step * step * sums.energy);
    book.entropy_bits = static_cast<double>(entropy);
    book.linear_gain = static_cast<double>(step * sums.correlation);
    return quantizer;
}

EntropyCodedQuantizer entropy_coded_normal(double step, Staircase staircase) {
    if (!(step >= smallest_step && step <= largest_step))
        throw usage_error(
            "step {} is not usable (entropy-coded bins are {} to {} standard deviations wide): choose one in this "
            "range",
            step, smallest_step, largest_step);
    const EntropyAndDistortion sums = entropy_and_distortion(step, staircase);
    return {staircase, step, sums.entropy_bits, sums.distortion};
}

EntropyCodedQuantizer entropy_coded_normal_at_rate(double rate_bits) {
    if (!(rate_bits >= lowest_rate && rate_bits <= highest_rate))
        throw usage_error(
            "entropy-coded rate of {} bits per entry is out of range ({} to {}): choose one in this range", rate_bits,
            lowest_rate, highest_rate);
    const auto solve = [&](Staircase staircase) {
        const auto missing = [&](double step) -> ValueAndSlope {
            const EntropyAndDistortion sums = entropy_and_distortion(step, staircase);
            return {rate_bits - sums.entropy_bits, -sums.entropy_slope};
        };
        const double guess = std::sqrt(2.0 * std::numbers::pi * std::numbers::e) * std::exp2(-rate_bits);
        return entropy_coded_normal(increasing_root(missing, guess, smallest_step, 20.0), staircase);
    };
    const EntropyCodedQuantizer tread = solve(Staircase::mid_tread);
    if (rate_bits < 1.3 || rate_bits > 2.5) return tread;
    const EntropyCodedQuantizer rise = solve(Staircase::mid_rise);
    return rise.distortion < tread.distortion ? rise : tread;
}

}  // namespace spiked::theory
