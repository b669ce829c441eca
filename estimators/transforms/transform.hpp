#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/transforms/noise_covariance.hpp"

namespace spiked::estimators {

/// A block in coordinates in which its noise is white or closer to white: block = C_left^(-1/2) Y C_right^(-1/2) /
/// unit, with noise entries of variance about 1/d. `note` says why nothing could be changed, or what was estimated.
struct WhiteCoordinates {
    arma::mat block;
    NoiseCovariance left;
    NoiseCovariance right;
    double unit = 1.0;
    std::string note;
};

/// A transform around a spectral estimator, for methods that need the matrix: a change of coordinates, undone after the
/// estimate.
struct Transform {
    std::string name;  ///< as written
    std::function<WhiteCoordinates(AnalysedBlock& block)> enter;
    bool exact = false;         ///< the noise is exactly white after the transform, because its law is known
    bool whole_counts = false;  ///< it takes the variance of an entry to be its mean
};

/// `whiten[:diagonal|:full]`  by A and B where they are known (if only one is, the other is the identity);
///          otherwise by estimates from the block without the signals that eoptshrink:edgefit finds. diagonal
///          (default): row and column variances by alternating maximum likelihood. full: two rounds of sample
///          covariances, each shrunk to a multiple of the identity (oracle-approximating shrinkage, Chen et al. 2010).
/// `dyson`  diagonal A and B (a rank-one variance profile) from the resolvent of the block itself, without a rank
///          (Landa and Kluger 2023, the Dyson equalizer). Needs all singular vectors once.
/// `biwhiten[:a=A][:b=B][:c=C][:fit]`  entries whose variance a + b m + c m^2 depends on their mean m, such as counts:
///          diagonal A and B from the entries themselves (Landa, Zhang and Kluger 2022); `fit` finds b and c.
/// `clip[:at=C][:fit]`  noise of heavy tails: the residual of a pilot estimate clipped at C robust deviations, `fit`
///          at those of least variance. A and B are the identity, and what is clipped is not undone.
[[nodiscard]] const std::vector<EstimatorEntry>& transforms();
[[nodiscard]] bool is_transform(std::string_view text);

struct TransformFamily;

/// A transform by its name and the options in it, parsed once like a SpectralSpec.
struct TransformSpec {
    const TransformFamily* family = nullptr;
    NameOptions named;

    [[nodiscard]] const EstimatorEntry& entry() const;
    /// Throws usage_error for options that exclude each other, and where the name asks to estimate what is known.
    [[nodiscard]] Transform make(const KnownNoise& known = {}) const;
};
/// Throws usage_error for an unknown name or option, with the nearest.
[[nodiscard]] TransformSpec transform_spec(std::string_view text);

}  // namespace spiked::estimators
