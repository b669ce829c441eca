#pragma once
#include "estimators/spectral/eoptshrink_rule.hpp"
#include "theory/laws/white_formulas.hpp"

/// The arithmetic of shrinkage under white noise, one source for CPU and GPU, like that of eOptShrink in
/// eoptshrink_rule.hpp.
namespace spiked::estimators {

/// The options, resolved for the blocks of one shape.
struct WhiteRule {
    theory::Loss loss = theory::Loss::frobenius;
    bool hard = false;    ///< values above the threshold are kept unchanged
    double aspect = 1.0;  ///< rows over columns
    double root_columns = 1.0;
    double threshold = 0.0;    ///< smallest value that is kept, divided by the noise level
    double level = 0.0;        ///< standard deviation of the noise entries, where it is known
    double median_root = 0.0;  ///< otherwise: the median value at level 1
};

/// The noise level, relative to the largest singular value.
[[nodiscard]] SPIKED_DEVICE inline double white_level(const WhiteRule& rule, const RelativeValues& spectrum) {
    if (rule.level > 0.0) return rule.level / spectrum.unit;
    const std::span<const double> values = spectrum.values;
    const std::size_t p = values.size();
    return (p % 2 == 1 ? values[p / 2] : 0.5 * (values[p / 2 - 1] + values[p / 2])) / rule.median_root;
}

/// Component i of a block. `standard` is the standard deviation of the noise entries, relative to the largest singular
/// value, times the root of the number of columns.
[[nodiscard]] SPIKED_DEVICE inline ShrunkComponent white_component(double aspect, theory::Loss loss, double standard,
                                                                   const RelativeValues& spectrum, std::size_t i) {
    const double observed = spectrum.values[i] / standard;
    double strength = theory::white::detection_threshold(aspect);
    ShrunkComponent found;
    if (observed * observed > theory::white::bulk_edge(aspect)) {
        strength = std::sqrt(theory::white::strength_squared(observed * observed, aspect));
        found.overlap_left = theory::white::overlap_left(strength, aspect);
        found.overlap_right = theory::white::overlap_right(strength, aspect);
    }
    const double shrunk = theory::white::shrunk(observed, aspect, loss) * standard * spectrum.unit;
    found.strength = strength * standard * spectrum.unit;
    found.shrunk = std::clamp(shrunk, 0.0, spectrum.observed[i]);
    return found;
}

/// Rank, edge and components at this noise level, which is relative to the largest singular value; `take` as in
/// estimate_eoptshrink.
template <class Take>
[[nodiscard]] SPIKED_DEVICE ShrinkageAnswer estimate_white(const WhiteRule& rule, double level,
                                                           const RelativeValues& spectrum, Take&& take) {
    ShrinkageAnswer answer;
    if (level == 0.0) {
        answer.outcome = ShrinkageOutcome::exactly_low_rank;
        return answer;
    }
    while (answer.rank < spectrum.values.size() && spectrum.values[answer.rank] > rule.threshold * level) ++answer.rank;
    const double standard = level * rule.root_columns;
    answer.edge = standard * standard * theory::white::bulk_edge(rule.aspect);
    for (std::size_t i = 0; i < answer.rank; ++i) {
        ShrunkComponent component = white_component(rule.aspect, rule.loss, standard, spectrum, i);
        if (rule.hard) component.shrunk = spectrum.observed[i];
        take(i, component);
    }
    return answer;
}

}  // namespace spiked::estimators
