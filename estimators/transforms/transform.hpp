#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/transforms/noise_covariance.hpp"

namespace spiked::estimators {

/// A block in coordinates in which its noise is (closer to) white: block = C_left^(-1/2) Y C_right^(-1/2) / unit,
/// entries of its noise of variance about 1/d. `note` says when nothing could be changed.
struct WhiteCoordinates {
    arma::mat block;
    NoiseCovariance left;
    NoiseCovariance right;
    double unit = 1.0;
    std::string note;
};

/// What needs the matrix stands around a spectral estimator: a change of coordinates, and back afterwards.
struct Transform {
    std::string name;  ///< as typed
    std::function<WhiteCoordinates(AnalysedBlock& block)> enter;
    bool exact = false;  ///< the noise is exactly white afterwards: its law was told
};

/// `whiten[:diagonal|:full]`  by A and B where they are told (one alone: the other is the identity);
///          otherwise estimated from the block without what eoptshrink:edgefit takes for signal. diagonal (default):
///          row and column variances by alternating maximum likelihood. full: two rounds of sample covariances, each
///          shrunk to a multiple of the identity (oracle-approximating shrinkage, Chen et al. 2010).
/// `dyson`  diagonal A and B (a rank-one variance profile) from the resolvent of the block itself, no rank needed
///          (Landa and Kluger 2023, the Dyson equalizer). Needs all singular vectors once.
[[nodiscard]] const std::vector<EstimatorEntry>& transforms();
[[nodiscard]] bool is_transform(std::string_view text);
/// Throws usage_error with the nearest legal name.
[[nodiscard]] Transform transform(std::string_view text, const KnownNoise& known = {});

}  // namespace spiked::estimators
