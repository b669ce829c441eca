#pragma once
#include "core/text/registry.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::estimators {

/// A loss between a covariance matrix A with one spike l, in units of the noise level, and its estimate
/// B = I + (e - 1) w w', where w is the eigenvector of the sample. Only a 2 x 2 problem is left of it: A = diag(l, 1),
/// w = (c, s), c^2 + s^2 = 1.
struct CovarianceLoss {
    RegistryEntry entry;
    /// The e that minimises the loss, from l > 1 and the squared cosine c^2. Between 1 and l.
    double (*shrunk)(double spike, double squared_cosine);
};

/// The losses, with the closed form of the optimal eigenvalue of each (Donoho, Gavish and Johnstone 2018).
///
/// Spikes of different size do not interact in the limit, so a loss of the whole matrix is the sum of those of its
/// spikes, or the largest for operator norms, and one function of one eigenvalue minimises it. For operator norms other
/// minimisers exist beside the largest component; these are optimal for every component. Accuracy: a few ulp. Tested
/// against a numerical minimisation of each loss.
[[nodiscard]] const Registry<CovarianceLoss>& covariance_losses();

/// The optimal eigenvalue in the units of the noise level: noise_level times `shrunk` of the spike.
[[nodiscard]] double shrunk_eigenvalue(const CovarianceLoss& loss, Eigenvalue population, Overlap squared_cosine,
                                       double noise_level);

}  // namespace spiked::estimators
