#include "validation/statistics/clustered.hpp"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace spiked::validation {
namespace {

constexpr double least_correlation = 0.5;  // within clusters, for the limit nearer to 1/2

using Beta = boost::math::beta_distribution<>;

/// Limits of Clopper and Pearson for a fraction of a number of trials that need not be whole.
double lower_limit(double share, double trials, double alpha) {
    if (!(share > 0.0)) return 0.0;
    return boost::math::quantile(Beta(share * trials, (1.0 - share) * trials + 1.0), alpha / 2.0);
}
double upper_limit(double share, double trials, double alpha) { return 1.0 - lower_limit(1.0 - share, trials, alpha); }

}  // namespace

double limits_in_errors(double degrees, double alpha) {
    if (std::isnan(degrees)) return degrees;
    return boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), alpha / 2.0));
}

Interval clustered_fraction(const Parts& parts, double alpha) {
    double blocks = 0.0;
    double with_property = 0.0;
    double squares = 0.0;
    bool of_one_kind = true;
    for (const auto& [part, one] : parts.sums) {
        blocks += one.count;
        with_property += one.sum;
        squares += one.count * one.count;
        of_one_kind = of_one_kind && (one.sum == 0.0 || one.sum == one.count);
    }
    const auto count = static_cast<std::uint64_t>(std::llround(blocks));
    if (count == 0) return {};
    const PartEstimate estimate = parts.mean();
    const double error = estimate.error();
    if (std::isnan(error)) {
        Interval binomial = fraction_interval(static_cast<std::uint64_t>(std::llround(with_property)), count, alpha);
        binomial.error = error;
        return binomial;
    }
    const double share = estimate.value;
    const double freedom = limits_in_errors(blocks - 1.0, alpha) / limits_in_errors(estimate.degrees, alpha);
    const double spread = error > 0.0 ? share * (1.0 - share) / (error * error) : blocks;
    const double fewest = blocks * blocks / squares;  // with one value for all blocks of a cluster
    const double effective = std::clamp(spread * freedom * freedom, fewest, blocks);
    const double cautious =
        of_one_kind ? fewest : std::min(effective, blocks / (1.0 + (squares / blocks - 1.0) * least_correlation));
    return {share, error, lower_limit(share, share > 0.5 ? cautious : effective, alpha),
            upper_limit(share, share > 0.5 ? effective : cautious, alpha), count};
}

}  // namespace spiked::validation
