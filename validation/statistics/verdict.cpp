#include "validation/statistics/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "validation/statistics/moments.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

std::string_view name_of(Verdict verdict) { return enum_name(verdict); }

namespace {

/// The count at which an interval about that mean lies on one side of every end of the region. 0 if the mean lies on
/// one or the count is beyond 1e15.
std::uint64_t deciding_count(const Interval& interval, const AcceptanceRegion& region, double skewness, double alpha) {
    const double deviation = interval.error * std::sqrt(static_cast<double>(interval.count));
    const double off = interval.estimate - region.predicted;
    const double to_margin = std::abs(region.margin - std::abs(off));
    if (!(to_margin > 0.0)) return 0;
    const auto count_for = [&](double room, double towards) {
        return count_for_half_width(room, deviation, alpha, towards * skewness);
    };
    const double side = off < 0.0 ? -1.0 : 1.0;
    if (std::abs(off) > region.margin) return count_for(to_margin, -side);
    const std::uint64_t near = count_for(to_margin, side);
    const std::uint64_t far = count_for(region.margin + std::abs(off), -side);
    return near == 0 || far == 0 ? 0 : std::max(near, far);
}

Comparison compare_interval(const Interval& interval, const AcceptanceRegion& region, double alpha, double skewness) {
    Comparison result = compare(interval, region);
    if (std::isfinite(result.low) && result.verdict == Verdict::inconclusive)
        result.needed = deciding_count(interval, region, skewness, alpha);
    return result;
}

}  // namespace

Comparison compare(const Interval& interval, const AcceptanceRegion& region) {
    Comparison result;
    if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) {
        result.low = result.high = result.detectable = std::numeric_limits<double>::quiet_NaN();
        return result;
    }
    result.low = interval.low;
    result.high = interval.high;
    result.detectable = smallest_detectable(interval, region);
    result.verdict = judge(interval, region);
    return result;
}

Comparison compare(const Moments& moments, double expected, double margin, double alpha) {
    return compare(moments, around(expected, margin), alpha);
}

Comparison compare(const Moments& moments, const AcceptanceRegion& region, double alpha) {
    const double skewness =
        moments.m2 > 0.0 ? moments.m3 / std::pow(moments.m2, 1.5) * std::sqrt(static_cast<double>(moments.count)) : 0.0;
    return compare_interval(mean_interval(moments, alpha), region, alpha, skewness);
}

Comparison compare(double mean, double mcse, std::uint64_t count, double expected, double margin, double alpha) {
    return compare_interval(mean_interval(mean, mcse, count, alpha), around(expected, margin), alpha, 0.0);
}

}  // namespace spiked::validation
