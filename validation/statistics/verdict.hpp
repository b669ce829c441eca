#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/enum_names.hpp"

namespace spiked::validation {

struct AcceptanceRegion;
struct Interval;
struct Moments;

enum class Verdict { pass, fail, inconclusive };
[[nodiscard]] std::string_view name_of(Verdict verdict);

/// The result of comparing a number with the region in which it must lie.
struct Comparison {
    Verdict verdict = Verdict::inconclusive;
    double low = 0.0;  ///< ends of its confidence interval
    double high = 0.0;
    double detectable = 0.0;  ///< smallest deviation from AcceptanceRegion::predicted that fails with probability 0.99
    /// Replicates that would decide an inconclusive comparison if mean, standard deviation and skewness stayed as they
    /// are; 0 if no number would, because the mean lies on the margin.
    std::uint64_t needed = 0;
};

/// Pass if the interval of level 1 - alpha for the mean (mean_interval, nominal) lies inside expected +- margin, fail
/// if it lies outside, otherwise inconclusive. The probability of a false fail is at most alpha for normal values at
/// any count, and near it for others. Inconclusive with fewer than two replicates, and where all have the same
/// value.
[[nodiscard]] Comparison compare(const Moments& moments, double expected, double margin, double alpha);
/// The same for any region.
[[nodiscard]] Comparison compare(const Moments& moments, const AcceptanceRegion& region, double alpha);
/// The same for any number with an interval; how many replicates would decide it stays unknown.
[[nodiscard]] Comparison compare(const Interval& interval, const AcceptanceRegion& region);
/// The same for values without skewness. Inconclusive without a standard error.
[[nodiscard]] Comparison compare(double mean, double mcse, std::uint64_t count, double expected, double margin,
                                 double alpha);

}  // namespace spiked::validation

template <>
struct spiked::EnumNames<spiked::validation::Verdict> {
    using Verdict = spiked::validation::Verdict;
    static constexpr EnumName<Verdict> table[] = {
        {Verdict::pass, "pass"},
        {Verdict::fail, "fail"},
        {Verdict::inconclusive, "inconclusive"},
    };
};
