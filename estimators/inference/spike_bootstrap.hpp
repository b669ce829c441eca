#pragma once
#include <cstddef>
#include <vector>

#include "estimators/inference/estimated_noise.hpp"
#include "estimators/svd/shape.hpp"
#include "sim/random/address.hpp"

namespace spiked::estimators {

/// The top component of a block with given noise singular values and one spike on Haar vectors.
struct BootstrapDraw {
    Eigenvalue outlier;
    double overlap_left = 0.0;
    double overlap_right = 0.0;
};

/// `count` such blocks with a spike of this strength. Noise of fixed singular values on Haar bases is diagonal after a
/// rotation of both sides, so that a block is diag(sqrt mu) + D u v^T with u and v Gaussian vectors divided by their
/// lengths. Its outlier z = s^2 is the largest root of D (s sqrt(a b) + c) = 1 with a = sum u^2 / (z - mu),
/// b = sum v^2 / (z - mu), c = sum u v sqrt(mu) / (z - mu), and its vectors follow from the same sums. A block whose
/// spike has no root above the noise is given the top noise eigenvalue and overlaps 0. Cost: about 20 passes over the
/// noise eigenvalues for each block.
[[nodiscard]] std::vector<BootstrapDraw> bootstrap_spike(const EstimatedNoise& noise, Shape shape, double strength,
                                                         std::size_t count, const stream::Stream& stream);

}  // namespace spiked::estimators
