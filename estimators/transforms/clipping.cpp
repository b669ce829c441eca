#include "estimators/transforms/clipping.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"

namespace spiked::estimators {
namespace {

constexpr double pilot_limit = 2.0;  ///< robust deviations, for the pilot of a fitted limit
constexpr int most_rounds = 30;

constexpr double normal = 1.4826;  ///< the median of |X| of a normal X, times this, is its standard deviation

double robust_deviation(const arma::mat& residual) {
    return normal * arma::median(arma::vec(arma::abs(arma::vectorise(residual))));
}

arma::mat equal_limits(const arma::mat& residual, double limit) {
    return arma::mat(arma::size(residual), arma::fill::value(limit));
}

/// Limits that are wider in rows and columns in which most entries are large, as those of a strong signal are.
arma::mat wide_limits(const arma::mat& residual, double at, double deviation) {
    const arma::mat sizes = arma::abs(residual);
    const arma::vec rows = normal * arma::median(sizes, 1);
    const arma::rowvec columns = normal * arma::median(sizes, 0);
    arma::mat limits(arma::size(residual));
    for (arma::uword j = 0; j < limits.n_cols; ++j)
        limits.col(j) = at * arma::clamp(rows, std::max(columns(j), deviation), arma::datum::inf);
    return limits;
}

double fraction_within(const arma::mat& residual, const arma::mat& limits) {
    return static_cast<double>(arma::accu(arma::abs(residual) < limits)) / static_cast<double>(residual.n_elem);
}

/// The residual clipped, over the fraction of entries that are not, so that a small signal in it is kept.
arma::mat clipped(const arma::mat& residual, const arma::mat& limits) {
    return arma::min(arma::max(residual, -limits), limits) / fraction_within(residual, limits);
}

/// Why nothing can be clipped; empty where it can.
std::string reason_against(const arma::mat& residual, double at, double deviation, double rounding) {
    if (!(deviation > rounding)) return "more than half of the block has no noise";
    if (!(arma::abs(residual).min() < at * deviation))
        return fmt::format("no entry is within {:.3g} robust deviations", at);
    return "";
}

/// The one of nine limits, half a robust deviation to eight, with the least mean of min(R^2, c^2) / P(|R| < c)^2.
double fitted_limit(const arma::mat& residual, double deviation) {
    const arma::vec sizes = arma::abs(arma::vectorise(residual));
    double best = 0.0;
    double least = std::numeric_limits<double>::infinity();
    for (int half_octave = 0; half_octave <= 8; ++half_octave) {
        const double at = 0.5 * std::pow(2.0, 0.5 * half_octave);
        const double kept = arma::mean(arma::conv_to<arma::vec>::from(sizes < at * deviation));
        const double variance = arma::mean(arma::square(arma::clamp(sizes, 0.0, at * deviation))) / (kept * kept);
        if (variance < least) {
            least = variance;
            best = at;
        }
    }
    return best;
}

struct Pilot {
    arma::mat signal;
    bool converged = false;
    std::string reason = {};  ///< why nothing can be clipped
};

/// Rounds of clipping and shrinking until no entry of the pilot moves by .3 robust deviations.
void settle(Pilot& pilot, const arma::mat& data, double at, bool wide, double rounding) {
    pilot.converged = false;
    for (int round = 0; round < most_rounds && !pilot.converged; ++round) {
        const arma::mat residual = data - pilot.signal;
        const double deviation = robust_deviation(residual);
        pilot.reason = reason_against(residual, at, deviation, rounding);
        if (!pilot.reason.empty()) return;
        const arma::mat limits = wide ? wide_limits(residual, at, deviation) : equal_limits(residual, at * deviation);
        AnalysedBlock block(pilot.signal + clipped(residual, limits), AnalysedBlock::EmptyLines::keep);
        const Shrinkage signal = eoptshrink(block.singular_values(), block.shape(), EOptShrinkOptions::edge_fit());
        const arma::mat next = block.denoised(signal.shrunk);
        pilot.converged = arma::abs(next - pilot.signal).max() < 0.3 * deviation;
        pilot.signal = next;
    }
}

}  // namespace

WhiteCoordinates clip_outliers(AnalysedBlock& block, std::optional<double> limit) {
    const arma::mat core = block.core();
    if (!core.is_finite())
        throw input_error("a block holds NaN or infinity (no deviation exists): clean the data first");
    WhiteCoordinates result{core, NoiseCovariance::identity(core.n_rows), NoiseCovariance::identity(core.n_cols), 1.0,
                            ""};
    const double unit = core.is_empty() ? 0.0 : arma::abs(core).max();
    const double rounding = static_cast<double>(block.shape().long_side()) * 1e-15;
    if (unit > 0.0) {
        const std::vector<double>& values = block.singular_values();
        if (values[values.size() / 2] <= rounding * values.front()) result.note = "no noise to clip";
    } else {
        result.note = "the block is zero or empty";
    }
    if (!result.note.empty()) return result;
    const arma::mat data = core / unit;
    Pilot pilot{arma::mat(arma::size(data), arma::fill::zeros)};
    for (const bool wide : {true, false})
        if (pilot.reason.empty()) settle(pilot, data, limit.value_or(pilot_limit), wide, rounding);
    const arma::mat residual = data - pilot.signal;
    const double deviation = robust_deviation(residual);
    const double at = limit ? *limit : fitted_limit(residual, deviation);
    result.note = pilot.reason.empty() ? reason_against(residual, at, deviation, rounding) : pilot.reason;
    if (!result.note.empty()) return result;
    result.block = pilot.signal + clipped(residual, equal_limits(residual, at * deviation));
    result.unit = unit;
    if (!limit) result.note = fmt::format("entries are clipped at {:.3g} robust deviations", at);
    if (!pilot.converged)
        result.note += fmt::format("{}the signal still changes after {} rounds of clipping: it may be underestimated",
                                   result.note.empty() ? "" : "; ", most_rounds);
    return result;
}

}  // namespace spiked::estimators
