#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

namespace spiked::validation {

/// Count, mean, central moment sums M2..M4, extremes and count of missing values of one quantity. Adding values one by
/// one or merging parts gives the same up to rounding; merging is associative and commutative in that sense.
/// Source: Chan, Golub & LeVeque 1983; Pebay 2008 for the third and fourth moment.
struct Moments {
    std::uint64_t count = 0;
    std::uint64_t missing = 0;
    double mean = 0.0;
    double m2 = 0.0;
    double m3 = 0.0;
    double m4 = 0.0;
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();

    /// NaN counts as missing.
    void add(double value);
    void merge(const Moments& other);
    /// Of the mean; NaN with fewer than two values.
    [[nodiscard]] double standard_error() const;
};

/// What a number is a number of: positions in the lists of methods and metrics, and the spike.
struct Quantity {
    std::size_t method = 0;
    std::size_t metric = 0;
    int k = 0;
    auto operator<=>(const Quantity&) const = default;
};

using MomentTable = std::map<Quantity, Moments>;

}  // namespace spiked::validation
