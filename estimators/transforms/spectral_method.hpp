#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/low_rank.hpp"
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// A spectral estimator with the transforms around it, `whiten+gd-shrink`: what is applied to blocks. Behind a
/// transform the strengths and overlaps belong to other coordinates: they are NaN, the edge is left out, `shrunk` are
/// the singular values of the estimate back in the block's own coordinates, and the note says what was seen where.
struct SpectralMethod {
    std::string name;                   ///< as typed
    std::vector<Transform> transforms;  ///< outermost first
    SpectralEstimator estimator;
    bool takes_noise_law = false;  ///< whether what is told of the noise changes its answer

    struct Factors {
        Shrinkage shrinkage;
        LowRank signal;
    };
    struct Applied {
        Shrinkage shrinkage;
        arma::mat signal;
    };

    /// Throws usage_error where a block is too small for the rank told in the name.
    void check_room(std::size_t rows, std::size_t columns) const;
    [[nodiscard]] Shrinkage estimate(AnalysedBlock& block) const;
    /// The estimated signal in factors, in the shape of the whole block.
    [[nodiscard]] Factors factors(AnalysedBlock& block) const;
    /// The estimated signal as a matrix. Without transforms: cheaper than the factors, one side's vectors.
    [[nodiscard]] Applied apply(AnalysedBlock& block) const;
};

/// That are applied to a block, one behind the other.
inline constexpr std::size_t most_transforms = 16;

/// Builds one from a name like `eoptshrink`, `whiten+gd-shrink:sigma=1`, `dyson+whiten+tw-test`. Throws usage_error
/// with the nearest legal name. `known` goes to the outermost transform, or to the estimator when there is none; an
/// estimator behind a whitening by known covariances knows that its noise is white with entries of variance 1/d.
[[nodiscard]] SpectralMethod spectral_method(std::string_view text, theory::Loss loss = theory::Loss::frobenius,
                                             const KnownNoise& known = {});

}  // namespace spiked::estimators
