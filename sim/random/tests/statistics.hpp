#pragma once
#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <vector>

#include "sim/random/address.hpp"

namespace spiked::stream {

/// The declared false-alarm rate for all statistical tests of a file. Seeds are fixed, so a result never changes.
inline constexpr double false_alarm = 1e-6;
inline const StudySeed test_seed = StudySeed::parse("0x5eed0000000000000000000000000007");

/// The two-sided limit for a standard normal when `tests` numbers are compared (Bonferroni).
inline double two_sided_z(double tests) {
    return boost::math::quantile(boost::math::complement(boost::math::normal(), false_alarm / tests / 2.0));
}

/// A bound on the Kolmogorov-Smirnov distance between a sample and its continuous law. It is exceeded with a
/// probability of at most `false_alarm / tests`, for any sample size (Dvoretzky, Kiefer and Wolfowitz with Massart's
/// constant).
inline double kolmogorov_limit(std::size_t count, double tests) {
    return std::sqrt(std::log(2.0 * tests / false_alarm) / (2.0 * static_cast<double>(count)));
}

template <class Cdf>
double kolmogorov_distance(std::vector<double> sample, Cdf cdf) {
    std::sort(sample.begin(), sample.end());
    const double count = static_cast<double>(sample.size());
    double distance = 0.0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const double p = cdf(sample[i]);
        distance = std::max({distance, p - static_cast<double>(i) / count, static_cast<double>(i + 1) / count - p});
    }
    return distance;
}

/// The distance of two samples of the same size. Under a common law each lies within kolmogorov_limit(count, 2 tests)
/// of it.
inline double kolmogorov_distance(std::vector<double> first, std::vector<double> second) {
    std::sort(first.begin(), first.end());
    std::sort(second.begin(), second.end());
    std::size_t j = 0;
    double distance = 0.0;
    for (std::size_t i = 0; i < first.size(); ++i) {
        while (j < second.size() && second[j] <= first[i]) ++j;
        const double here = static_cast<double>(j) - static_cast<double>(i + 1);
        const double before = static_cast<double>(j) - static_cast<double>(i);
        distance = std::max({distance, std::abs(here), std::abs(before)});
    }
    return distance / static_cast<double>(first.size());
}

inline double kolmogorov_limit_of_two(std::size_t count, double tests) {
    return 2.0 * kolmogorov_limit(count, 2.0 * tests);
}

}  // namespace spiked::stream
