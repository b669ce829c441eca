#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/host_device.hpp"
#include "estimators/ranks/edge_fit.hpp"
#include "estimators/spectral/empirical_law.hpp"
#include "estimators/spectral/noise_imputation.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/edge_extrapolation.hpp"
#include "theory/laws/shrinkers.hpp"

/// The arithmetic of eOptShrink, one source for CPU and GPU: it allocates no memory and throws no exceptions. Symbols
/// as in the paper's Algorithm 2: k is the pilot, L the edge.
namespace spiked::estimators {

/// How the top noise eigenvalues, which the outliers hide, are filled in: not at all; by the pilot's k values with
/// exponent base j/k or (j-1)/k; or by 2 rank values on the singular-value scale that replace the largest 2 rank of all
/// p atoms, signals included (the author's program).
enum class Imputation { none, from_j, from_j_minus_1, twice_rank };

/// How the bulk edge is found: extrapolated from eigenvalues k + 1 and 2k + 1, or by fit_edge.
enum class EdgeRule { two_points, fit };

/// The options, resolved for the blocks of one shape.
struct EOptShrinkRule {
    theory::Loss loss = theory::Loss::frobenius;
    std::size_t pilot = 0;  ///< k; 0: the shape is too small for an edge estimate
    EdgeRule edge = EdgeRule::two_points;
    double factor = 1.0;
    int power = 1;
    double margin = 0.0;
    std::size_t bound = 0;  ///< largest rank that the edge rule can count
    Imputation imputation = Imputation::from_j_minus_1;
    bool mass_of_rest = true;
    bool clip = true;
    bool rank_is_given = false;
    std::size_t rank = 0;  ///< used if rank_is_given
};

enum class ShrinkageOutcome : std::uint8_t {
    estimated,
    exactly_low_rank,  ///< no noise is left after the components: keep them unshrunk
    no_room            ///< the rank leaves fewer noise eigenvalues than the imputation needs
};

struct ShrinkageAnswer {
    ShrinkageOutcome outcome = ShrinkageOutcome::estimated;
    std::size_t rank = 0;   ///< found or given
    double edge = 0.0;      ///< eigenvalue, relative to the largest one
    std::size_t noise = 0;  ///< number of eigenvalues of the noise law
};

[[nodiscard]] SPIKED_DEVICE inline std::size_t needed_values(std::size_t rank, std::size_t k, Imputation imputation) {
    if (imputation == Imputation::none) return rank + 1;
    if (imputation == Imputation::twice_rank) return 4 * rank + 1;
    return rank + 2 * k + 1;
}

/// Step 1: bulk edge and rank. `weights` come from intercept_weights(k) and are used where the edge is fitted. Behind a
/// rank that is given, the edge is found from the eigenvalues that follow it: the same positions of the noise, counted
/// from there, and as far down as the spectrum has room.
[[nodiscard]] SPIKED_DEVICE inline EdgeFit rank_and_edge(const EOptShrinkRule& rule,
                                                         std::span<const double> eigenvalues,
                                                         std::span<const double> weights) {
    if (rule.edge == EdgeRule::fit)
        return rule.rank_is_given ? edge_behind(weights, eigenvalues, rule.rank)
                                  : fit_edge(weights, eigenvalues, rule.margin, rule.bound);
    const auto raised = [&](std::size_t i) {
        return rule.power == 1 ? eigenvalues[i] : std::pow(eigenvalues[i], rule.power);
    };
    const std::size_t k = rule.pilot;
    const std::size_t behind = rule.rank_is_given ? std::min(rule.rank, eigenvalues.size() - 2 * k - 1) : 0;
    const double upper = raised(behind + k);
    const double raised_edge = upper + rule.factor * theory::edge_extrapolation * (upper - raised(behind + 2 * k));
    EdgeFit found;
    found.edge = rule.power == 1 ? raised_edge : std::pow(raised_edge, 1.0 / rule.power);
    if (rule.rank_is_given) return {behind, found.edge};
    while (found.rank < eigenvalues.size() && raised(found.rank) > (1.0 + rule.margin) * raised_edge) ++found.rank;
    return found;
}

/// Step 2: writes the eigenvalues of the noise law, largest first, to the front of `noise`, which has room for all, and
/// returns their number.
[[nodiscard]] SPIKED_DEVICE inline std::size_t fill_noise_law(const EOptShrinkRule& rule,
                                                              const RelativeValues& spectrum, std::size_t rank,
                                                              std::span<double> noise) {
    if (rule.imputation == Imputation::twice_rank) {
        for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = spectrum.values[i];
        impute_top(noise, 2 * rank, 0.0);
        for (double& value : noise) value *= value;
        return noise.size();
    }
    const std::span<double> rest = noise.first(noise.size() - rank);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = spectrum.eigenvalues[rank + i];
    if (rule.imputation == Imputation::none) return rest.size();
    if (rule.power != 1)
        for (double& value : rest) value = std::pow(value, rule.power);
    impute_top(rest, rule.pilot, rule.imputation == Imputation::from_j ? 1.0 : 0.0);
    if (rule.power != 1)
        for (double& value : rest) value = std::pow(value, 1.0 / rule.power);
    return rest.size();
}

/// The author's program as it is: nothing is clipped.
[[nodiscard]] SPIKED_DEVICE inline ShrunkComponent unclipped(const EmpiricalTransforms& at, bool left_is_short,
                                                             theory::Loss loss) {
    const double d = 1.0 / std::sqrt(at.d_transform);
    const double to_overlap = at.d_transform / at.d_transform_slope;
    const double a_s = at.stieltjes_short * to_overlap;
    const double a_l = at.stieltjes_long * to_overlap;
    double shrunk = 0.0;
    if (loss == theory::Loss::frobenius) {
        shrunk = d * std::sqrt(a_s * a_l);
    } else if (loss == theory::Loss::operator_norm) {
        shrunk = d * std::sqrt(std::min(a_s, a_l) / std::max(a_s, a_l));
    } else {
        // |d (sqrt(a_s a_l) - sqrt((1 - a_s)(1 - a_l)))|, where the roots of negative numbers are imaginary.
        const double both = a_s * a_l;
        const double neither = (1.0 - a_s) * (1.0 - a_l);
        const double real = (both < 0.0 ? 0.0 : std::sqrt(both)) - (neither < 0.0 ? 0.0 : std::sqrt(neither));
        const double imaginary = (both < 0.0 ? std::sqrt(-both) : 0.0) - (neither < 0.0 ? std::sqrt(-neither) : 0.0);
        shrunk = std::hypot(d * real, d * imaginary);
    }
    return {d, left_is_short ? a_s : a_l, left_is_short ? a_l : a_s, std::isfinite(shrunk) ? shrunk : 0.0};
}

/// Step 3 for component i: strength, overlaps and shrunk value, on the scale of the block itself.
[[nodiscard]] SPIKED_DEVICE inline ShrunkComponent shrink_component(const EOptShrinkRule& rule, Shape shape,
                                                                    const RelativeValues& spectrum,
                                                                    const EmpiricalLaw& law, std::size_t i) {
    const Eigenvalue outlier{spectrum.eigenvalues[i]};
    ShrunkComponent found;
    if (rule.clip) {
        OutlierEstimate estimate;
        if (outlier.value > law.noise[0]) estimate = estimate_outlier(law, shape, outlier);
        const double shrunk =
            theory::shrink(estimate.strength, estimate.overlap_left, estimate.overlap_right, rule.loss);
        found = {estimate.strength, estimate.overlap_left, estimate.overlap_right,
                 std::clamp(shrunk * spectrum.unit, 0.0, spectrum.observed[i])};
    } else {
        found = unclipped(transforms_at(law, outlier), shape.rows <= shape.columns, rule.loss);
        found.shrunk *= spectrum.unit;
    }
    found.strength *= spectrum.unit;
    return found;
}

/// All three steps. Requires 1 <= k, 2k + 1 <= p and a largest singular value above 0; `noise` has room for p numbers.
/// If the outcome is `estimated`, calls `take(i, component)` for each of the `rank` components, largest first.
template <class Take>
[[nodiscard]] SPIKED_DEVICE ShrinkageAnswer estimate_eoptshrink(const EOptShrinkRule& rule, Shape shape,
                                                                const RelativeValues& spectrum,
                                                                std::span<const double> weights,
                                                                std::span<double> noise, Take&& take) {
    const std::span<const double> lambda = spectrum.eigenvalues;
    const std::size_t p = lambda.size();
    const EdgeFit fit = rank_and_edge(rule, lambda, weights);
    ShrinkageAnswer answer;
    answer.rank = rule.rank_is_given ? std::min(rule.rank, p) : fit.rank;
    answer.edge = fit.edge;
    if (fit.edge == 0.0) {
        answer.outcome = ShrinkageOutcome::exactly_low_rank;
        return answer;
    }
    if (needed_values(answer.rank, rule.pilot, rule.imputation) > p) {
        answer.outcome = ShrinkageOutcome::no_room;
        // The rank that is answered is 0, so the edge is that of all eigenvalues.
        EOptShrinkRule none = rule;
        none.rank_is_given = true;
        none.rank = 0;
        answer.edge = rank_and_edge(none, lambda, weights).edge;
        return answer;
    }
    // An edge above components that are counted is no edge: it is then the largest eigenvalue that is not counted.
    if (rule.rank_is_given && answer.rank > 0 && answer.rank < p && answer.edge >= lambda[answer.rank - 1])
        answer.edge = lambda[answer.rank];
    answer.noise = fill_noise_law(rule, spectrum, answer.rank, noise);
    const std::span<double> atoms = noise.first(answer.noise);
    // Imputed values can exceed the outliers when the bulk has no square-root edge; they are then bounded by the
    // largest observed noise eigenvalue.
    if (rule.clip && answer.rank > 0 && atoms[0] >= lambda[answer.rank - 1])
        for (double& mu : atoms) mu = std::min(mu, lambda[answer.rank]);
    EmpiricalLaw law(atoms, shape);
    if (!rule.mass_of_rest) law.count = static_cast<double>(p);
    for (std::size_t i = 0; i < answer.rank; ++i) take(i, shrink_component(rule, shape, spectrum, law, i));
    return answer;
}

}  // namespace spiked::estimators
