#pragma once
#include <optional>
#include <span>

#include "estimators/spectral/spectral_estimator.hpp"

namespace spiked::estimators {

struct TracyWidomOptions {
    theory::Loss loss = theory::Loss::frobenius;
    double level = 0.01;                ///< chance to call the top of pure noise a signal, a test
    std::optional<double> noise_level;  ///< standard deviation of the entries
    KnownLaw law;                       ///< empty: white
};

/// Sequential Tracy-Widom test: components count from the largest on while they lie above the upper `level` quantile
/// of the top noise eigenvalue, edge + TW1 / (g d^(2/3)).
///   white, level known       (sqrt n + sqrt d)^2 sigma^2 is the edge
///   white, level unknown     from the median of the values not yet counted, as a block with so many rows and columns
///                            fewer, again at every step
///   known separable law      the oracle: A and B as given, entries of X of variance 1/d or sigma^2
/// Strengths, overlaps and shrunk values are those of the law. Source: Johnstone 2001; Kritchman and Nadler 2009 for
/// the sequence. Cost: a quantile when made (30 ms), then O(p), with a known law O(atoms).
class TracyWidomTest {
public:
    /// Throws usage_error when the level is outside (0, 1).
    explicit TracyWidomTest(TracyWidomOptions options);
    [[nodiscard]] Shrinkage operator()(std::span<const double> singular_values, Shape shape) const;

private:
    TracyWidomOptions options_;
    double quantile_;
};

}  // namespace spiked::estimators
