#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

namespace spiked::validation {

/// Count, mean, sums of central moments M2..M4, extremes and number of missing values of one quantity. Adding values
/// one by one and merging parts give the same result up to rounding; in that sense merging is associative and
/// commutative. Source: Chan, Golub & LeVeque 1983; Pebay 2008 for the third and fourth moment.
struct Moments {
    std::uint64_t count = 0;
    std::uint64_t missing = 0;
    double mean = 0.0;
    double m2 = 0.0;
    double m3 = 0.0;
    double m4 = 0.0;
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();

    /// NaN counts as a missing value.
    void add(double value);
    void merge(const Moments& other);
    /// Standard error of the mean; NaN with fewer than two values.
    [[nodiscard]] double standard_error() const;
};

/// Identifies a measured quantity: positions in the lists of methods and metrics, and the number of the spike.
struct Quantity {
    std::size_t method = 0;
    std::size_t metric = 0;
    int k = 0;
    auto operator<=>(const Quantity&) const = default;
};

using MomentTable = std::map<Quantity, Moments>;

}  // namespace spiked::validation
