#pragma once
#include <optional>
#include <span>

#include "estimators/spectral/spectral_estimator.hpp"

namespace spiked::estimators {

struct TracyWidomOptions {
    theory::Loss loss = theory::Loss::frobenius;
    double level = 0.01;                ///< probability per test that the top of pure noise is taken for a signal
    std::optional<double> noise_level;  ///< standard deviation of the entries
    KnownLaw law;                       ///< empty: white noise
};

/// Sequential Tracy-Widom test: from the largest on, components are counted while they lie above the upper `level`
/// quantile of the top noise eigenvalue, edge + TW1 / (g d^(2/3)).
///   white, level known       the edge is (sqrt n + sqrt d)^2 sigma^2
///   white, level unknown     estimated at every step from the median of the values not yet counted, as a block with
///                            correspondingly fewer rows and columns
///   known separable law      the oracle: A and B as given, entries of X of variance 1/d or sigma^2
/// Strengths, overlaps and shrunk values follow from the law. Source: Johnstone 2001; Kritchman and Nadler 2009 for the
/// sequence. Cost: a quantile at construction (30 ms), then O(p), or O(atoms) with a known law.
class TracyWidomTest {
public:
    /// The level must lie between 0 and 1.
    explicit TracyWidomTest(TracyWidomOptions options);
    [[nodiscard]] Shrinkage operator()(std::span<const double> singular_values, Shape shape) const;

private:
    TracyWidomOptions options_;
    double quantile_;
};

}  // namespace spiked::estimators
