#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/low_rank.hpp"
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// A spectral estimator with the transforms around it, `whiten+gd-shrink`, as it is applied to blocks. With a
/// transform, strengths and overlaps belong to other coordinates: they are NaN, the edge is left out, `shrunk` are the
/// singular values of the estimate in the block's own coordinates, and the note gives the bulk edge in the other
/// coordinates.
struct SpectralMethod {
    std::string name;                             ///< as written
    theory::Loss loss = theory::Loss::frobenius;  ///< for which its shrinkage is optimal
    std::optional<TransformSpec> outermost;       ///< of the first transform
    SpectralSpec spec;                            ///< of the estimator
    std::vector<Transform> transforms;            ///< outermost first
    SpectralEstimator estimator;

    /// Whether it needs the block itself; without that, singular values and the shape are enough.
    [[nodiscard]] bool needs_block() const { return !transforms.empty() || estimator.estimate_block; }
    /// Whether a known noise law changes its result.
    [[nodiscard]] bool takes_noise_law() const;
    /// The same method for blocks whose noise law is known. The law is passed to the outermost transform, or to the
    /// estimator when there is none. After whitening by known covariances the estimator is given that its noise is
    /// white with entries of variance 1/d. Throws usage_error if the name asks to estimate what is known.
    [[nodiscard]] SpectralMethod knowing(const KnownNoise& noise) const;

    struct Factors {
        Shrinkage shrinkage;
        LowRank signal;
    };
    struct Applied {
        Shrinkage shrinkage;
        arma::mat signal;
    };

    /// Throws usage_error if a block is too small for the rank given in the name.
    void check_room(std::size_t rows, std::size_t columns) const;
    [[nodiscard]] Shrinkage estimate(AnalysedBlock& block) const;
    /// The estimated signal in factors, in the shape of the whole block.
    [[nodiscard]] Factors factors(AnalysedBlock& block) const;
    /// The estimated signal as a matrix. Without transforms this is cheaper than the factors: it needs one side's
    /// vectors.
    [[nodiscard]] Applied apply(AnalysedBlock& block) const;
};

/// The largest number of transforms that are applied to a block one after the other.
inline constexpr std::size_t most_transforms = 16;

/// Builds a method from a name like `eoptshrink`, `whiten+gd-shrink:sigma=1`, `dyson+whiten+tw-test`. Throws
/// usage_error with the nearest legal name.
[[nodiscard]] SpectralMethod spectral_method(std::string_view text, theory::Loss loss = theory::Loss::frobenius);

/// The names that use a known noise law, for messages: `tw-test and whiten+NAME`.
[[nodiscard]] std::string users_of_noise_law();

}  // namespace spiked::estimators
