#pragma once
#include <armadillo>
#include <cstddef>
#include <optional>
#include <span>

#include "estimators/ranks/parallel_analysis.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

struct TracyWidomOptions {
    theory::Loss loss = theory::Loss::frobenius;
    double level = 0.01;                ///< probability per test that the top of pure noise is taken for a signal
    std::optional<double> noise_level;  ///< standard deviation of the entries
    KnownLaw law;                       ///< empty: white noise
    /// Number of copies of the block with random signs that decide the rank in place of the Tracy-Widom quantile
    /// (parallel_analysis.hpp). Strengths, overlaps and shrunk values still follow from the law.
    std::optional<std::size_t> sign_flips;
    /// The edge of white noise is shifted by k (1 + sqrt b)^2 / (sqrt b d) times the variance, b = n/d, where k is the
    /// excess kurtosis of the entries behind the components before (theory/laws/entry_kurtosis.hpp).
    bool kurtosis = false;
};

/// The excess kurtosis of the entries of a matrix whose mean is 0: the mean fourth power over the squared mean square,
/// less 3. 0 for a matrix of zeros.
[[nodiscard]] double excess_kurtosis(const arma::mat& entries);

/// Sequential Tracy-Widom test: from the largest on, components are counted while they lie above the upper `level`
/// quantile of the top noise eigenvalue, edge + TW1 / (g d^(2/3)).
///   white, level known       the edge is (sqrt n + sqrt d)^2 sigma^2
///   white, level unknown     estimated at every step from the median of the values not yet counted, as a block with
///                            correspondingly fewer rows and columns
///   known separable law      the oracle: A and B as given, entries of X of variance 1/d or sigma^2
/// The level holds in the limit for entries with finite fourth moments, and at usual sizes for Gaussian and lighter
/// entries. White blocks of 128 x 128 (512 x 512) that exceed the quantile at level .01, known noise level, in 4000
/// (400) blocks of study `entry-laws`: gaussian .006 (.010), rademacher .0015 (.003), uniform .004 (.000), laplace .054
/// (.043), student:5 .25 (.20), two-point:0.05 .60 (.34), sparse:0.05 .67 (.45). The edge is shifted by an amount
/// proportional to the kurtosis (kurtosis_edge_shift), and single large entries are outliers. `sign_flips` keeps the
/// level for any symmetric independent entries. `kurtosis` keeps it to first order where the fourth moment is finite,
/// for skewed entries too; heavier tails add outliers, which no shift of the edge accounts for.
///
/// Strengths, overlaps and shrunk values follow from the law. Source: Johnstone 2001; Kritchman and Nadler 2009 for the
/// sequence. Cost: a quantile at construction (30 ms), then O(p), or O(atoms) with a known law.
class TracyWidomTest {
public:
    /// The level must lie between 0 and 1. Throws usage_error for a number of sign flips that cannot reach it, and for
    /// the kurtosis beside a known law, where its effect is not known.
    explicit TracyWidomTest(TracyWidomOptions options);
    /// Throws usage_error with sign flips and with the kurtosis, which need the block.
    [[nodiscard]] Shrinkage operator()(std::span<const double> singular_values, Shape shape) const;
    [[nodiscard]] Shrinkage operator()(AnalysedBlock& block) const;

private:
    [[nodiscard]] Shrinkage judge(const RelativeSpectrum& spectrum, const ParallelAnalysis* flips,
                                  AnalysedBlock* block) const;

    TracyWidomOptions options_;
    double quantile_;
};

}  // namespace spiked::estimators
