#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::estimators {

/// What a method expects its own squared error to be, ||S^ - S||_F^2.
struct ErrorEstimate {
    double squared = 0.0;
    double relative = 0.0;  ///< over the estimated ||S||_F^2
};

/// What a spectral estimator says about a block, from its singular values alone. The four arrays have length `rank`,
/// largest component first; an entry a method does not estimate is NaN.
struct Shrinkage {
    std::size_t rank = 0;
    std::optional<Eigenvalue> bulk_edge;  ///< estimated upper edge of the noise, without any rank margin
    std::vector<double> strengths;        ///< estimated singular values of the clean signal
    std::vector<double> overlap_left;     ///< squared inner products of true and observed vectors
    std::vector<double> overlap_right;
    std::vector<double>
        shrunk;  ///< what replaces each observed singular value; 0 <= shrunk <= observed but for eoptshrink:author
    std::vector<double> noise_eigenvalues;  ///< the fitted noise law, largest first; empty where a method has none
    std::optional<ErrorEstimate> expected_error;  ///< of methods that state one
    std::string note;  ///< why the answer is empty or degraded; empty when there is nothing to say
};

struct ShrunkComponent {
    double strength = 0.0;
    double overlap_left = 0.0;
    double overlap_right = 0.0;
    double shrunk = 0.0;
};

/// One more component; the rank is set apart.
void append(Shrinkage& result, const ShrunkComponent& component);

/// The first `rank` values as they are, for a block without noise.
[[nodiscard]] Shrinkage unshrunk(const RelativeSpectrum& spectrum, std::size_t rank, std::string note);
/// The first `rank` values as they are, for a method that says nothing of strengths and overlaps.
[[nodiscard]] Shrinkage truncated(const RelativeSpectrum& spectrum, std::size_t rank);
/// Rank 0, and why.
[[nodiscard]] Shrinkage nothing_found(std::string note);

}  // namespace spiked::estimators
