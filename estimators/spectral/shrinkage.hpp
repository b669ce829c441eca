#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::estimators {

/// A method's own estimate of its squared error ||S^ - S||_F^2.
struct ErrorEstimate {
    double squared = 0.0;
    double relative = 0.0;  ///< divided by the estimated ||S||_F^2
};

/// The result of a spectral estimator for a block, from its singular values alone. The four arrays have length `rank`,
/// largest component first; an entry that a method does not estimate is NaN.
struct Shrinkage {
    std::size_t rank = 0;
    std::optional<Eigenvalue> bulk_edge;  ///< estimated upper edge of the noise, without any rank margin
    std::vector<double> strengths;        ///< estimated singular values of the clean signal
    std::vector<double> overlap_left;     ///< squared inner products of true and observed vectors
    std::vector<double> overlap_right;
    /// Replacements of the observed singular values; 0 <= shrunk <= observed except for eoptshrink:author.
    std::vector<double> shrunk;
    std::vector<double> noise_eigenvalues;  ///< the fitted noise law, largest first; empty if a method has none
    std::optional<double> noise_level;  ///< standard deviation of the noise entries; only of methods for white noise
    /// With a noise level: whether the method takes the law of the largest noise value to be Tracy-Widom's.
    bool tracy_widom_null = true;
    std::optional<ErrorEstimate> expected_error;  ///< only of methods that estimate it
    std::string note;                             ///< why the result is empty or degraded; otherwise empty
};

struct ShrunkComponent {
    double strength = 0.0;
    double overlap_left = 0.0;
    double overlap_right = 0.0;
    double shrunk = 0.0;
};

/// Appends a component; the rank is set separately.
void append(Shrinkage& result, const ShrunkComponent& component);

/// The first `rank` values unchanged, for a block without noise.
[[nodiscard]] Shrinkage unshrunk(const RelativeSpectrum& spectrum, std::size_t rank, std::string note);
/// The first `rank` values unchanged, for a method that does not estimate strengths and overlaps.
[[nodiscard]] Shrinkage truncated(const RelativeSpectrum& spectrum, std::size_t rank);
/// Rank 0 with a note that gives the reason.
[[nodiscard]] Shrinkage nothing_found(std::string note);

}  // namespace spiked::estimators
