#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "theory/separable_law.hpp"

namespace spiked::theory {

/// Where one rank rule starts to count an eigenvalue as signal, the edge being known exactly.
struct RankRule {
    std::string name;
    Eigenvalue cutoff;                     ///< the rule counts eigenvalues of Z Z^T above this
    SignalStrength smallest_strength;      ///< whose limiting outlier reaches the cutoff
    double false_alarm_probability = 0.0;  ///< that pure noise of this size has an eigenvalue above the cutoff
    double expected_false_alarms = 0.0;    ///< how many, on average
};

/// What the asymptotic law leaves out at one size.
struct FiniteSize {
    std::size_t rows = 0;
    std::size_t columns = 0;
    double top_noise_shift = 0.0;               ///< mean of the top noise eigenvalue minus the edge; negative
    double top_noise_standard_deviation = 0.0;  ///< both in eigenvalue units
    std::vector<RankRule> rules;
    EdgeRegularity regularity;  ///< not regular: none of the numbers above is to be trusted
};

/// First-order finite-size theory of n x d noise under `law` (research note theory.md C6, C7): the top eigenvalue is
/// edge + TW1 / (g d^(2/3)), eigenvalues above a cutoff are counted by the limiting edge process. Rules, with
/// p = min(n, d): `eoptshrink`, eigenvalue / edge - 1 > p^(-1/3); `eoptshrink:margin=0`, the same without the margin;
/// `tw-test:level=L`, above the upper L quantile of the top noise eigenvalue. A rule that estimates the edge from
/// data (eOptShrink does) errs more than this: under coloured noise its estimate is low by 5 to 50 % at n = d = 128.
/// Throws usage_error when n/d is not the aspect of the law (1e-9), a size is 0, or level is outside (0, 1).
/// Cost: about 15 ms, nearly all of it the quantile.
[[nodiscard]] FiniteSize finite_size(const SeparableLaw& law, std::size_t rows, std::size_t columns,
                                     double level = 0.01);

}  // namespace spiked::theory
