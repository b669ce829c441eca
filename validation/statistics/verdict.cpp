#include "validation/statistics/verdict.hpp"

#include <cmath>
#include <limits>

#include "validation/statistics/moments.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

std::string_view name_of(Verdict verdict) {
    constexpr std::string_view names[] = {"pass", "fail", "inconclusive"};
    return names[static_cast<int>(verdict)];
}

namespace {

Comparison compare_interval(const Interval& interval, double expected, double margin, double alpha) {
    Comparison result;
    if (!std::isfinite(interval.low)) {
        result.low = result.high = result.detectable = std::numeric_limits<double>::quiet_NaN();
        return result;
    }
    const AcceptanceRegion region = around(expected, margin);
    result.low = interval.low;
    result.high = interval.high;
    result.detectable = smallest_detectable(interval, region);
    result.verdict = judge(interval, region);
    if (result.verdict == Verdict::inconclusive) {
        const double to_margin = std::abs(margin - std::abs(interval.estimate - expected));
        const double deviation = interval.error * std::sqrt(static_cast<double>(interval.count));
        if (to_margin > 0.0) result.needed = count_for_half_width(to_margin, deviation, alpha);
    }
    return result;
}

}  // namespace

Comparison compare(const Moments& moments, double expected, double margin, double alpha) {
    return compare_interval(mean_interval(moments, alpha), expected, margin, alpha);
}

Comparison compare(double mean, double mcse, std::uint64_t count, double expected, double margin, double alpha) {
    return compare_interval(mean_interval(mean, mcse, count, alpha), expected, margin, alpha);
}

}  // namespace spiked::validation
