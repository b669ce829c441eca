#include "validation/verdict.hpp"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace spiked::validation {

std::string_view name_of(Verdict verdict) {
    constexpr std::string_view names[] = {"pass", "fail", "inconclusive"};
    return names[static_cast<int>(verdict)];
}

Comparison compare(double mean, double mcse, std::uint64_t count, double expected, double margin, double alpha) {
    Comparison result;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (count < 2 || !std::isfinite(mean) || !std::isfinite(mcse)) {
        result.low = result.high = result.detectable = nan;
        return result;
    }
    const double replicates = static_cast<double>(count);
    const double z =
        boost::math::quantile(boost::math::complement(boost::math::students_t(replicates - 1.0), alpha / 2.0));
    const double power = boost::math::quantile(boost::math::normal(), 0.99);
    result.low = mean - z * mcse;
    result.high = mean + z * mcse;
    result.detectable = margin + (z + power) * mcse;
    if (result.low >= expected - margin && result.high <= expected + margin)
        result.verdict = Verdict::pass;
    else if (result.low > expected + margin || result.high < expected - margin)
        result.verdict = Verdict::fail;
    else {
        const double room = std::abs(margin - std::abs(mean - expected));
        const double factor = z * mcse / room;
        if (room > 0.0 && factor < 1e6)
            result.needed = static_cast<std::uint64_t>(std::ceil(replicates * factor * factor));
    }
    return result;
}

}  // namespace spiked::validation
