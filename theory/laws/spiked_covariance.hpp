#pragma once
#include <optional>

#include "theory/laws/quantities.hpp"

namespace spiked::theory {

/// Johnstone's spiked covariance model: n independent samples of p features with covariance s^2 I, but for a few
/// eigenvalues l, the spikes. With n, p -> infinity and gamma = p/n fixed, the eigenvalues of the sample covariance
/// X^T X / n fill the bulk between s^2 (1 - sqrt gamma)^2 and s^2 (1 + sqrt gamma)^2, and a spike leaves it when
/// |l/s^2 - 1| > sqrt gamma: above the bulk for l > s^2, below it for l < s^2, which takes gamma < 1. In units of s^2:
///   sample eigenvalue         l (1 + gamma / (l - 1))
///   squared cosine            (1 - gamma / (l - 1)^2) / (1 + gamma / (l - 1)),
///                             between the eigenvectors of sample and population
/// Arguments and results are eigenvalues of a covariance matrix in the units of `noise_level` (s^2, a variance), not
/// singular values. Samples have mean 0; n samples with their mean subtracted are n - 1 such samples. The limits of
/// eigenvalues and cosines hold for entries with finite fourth moments.
/// Source: Johnstone 2001; Baik and Silverstein 2006; Paul 2007; Benaych-Georges and Nadakuditi 2011.
/// Accuracy: a few ulp, relative to the distance from the threshold for cosines. Cost: nanoseconds.
class SpikedCovariance {
public:
    /// The aspect ratio is that of the data matrix, samples over features: n/p, not gamma. Throws usage_error for a
    /// noise level that is not positive and finite.
    explicit SpikedCovariance(AspectRatio samples_over_features, double noise_level = 1.0);

    [[nodiscard]] Eigenvalue upper_edge() const;
    /// The smallest sample eigenvalue of the bulk; 0 for gamma >= 1, where p - n eigenvalues are 0.
    [[nodiscard]] Eigenvalue lower_edge() const;
    /// The population eigenvalue above which a spike is detectable.
    [[nodiscard]] Eigenvalue detection_threshold() const;
    [[nodiscard]] bool detectable(Eigenvalue population) const;

    /// The limit of the sample eigenvalue that belongs to a spike: an edge of the bulk where it is not detectable, the
    /// upper one for l >= s^2.
    [[nodiscard]] Eigenvalue sample_eigenvalue(Eigenvalue population) const;
    /// Its inverse: the population eigenvalue behind a sample eigenvalue outside the bulk; nothing within the bulk and
    /// at its edges.
    [[nodiscard]] std::optional<Eigenvalue> population_eigenvalue(Eigenvalue sample) const;
    /// 0 where the spike is not detectable.
    [[nodiscard]] Overlap squared_cosine(Eigenvalue population) const;

    /// Limits of sqrt(n) times the standard deviations of what one sample of a detectable spike shows.
    struct Spread {
        double sample_eigenvalue = 0.0;
        double population_eigenvalue = 0.0;  ///< computed from the sample eigenvalue, noise level known
        double squared_cosine = 0.0;         ///< the true one of that sample, around its limit
        /// The estimate from the sample eigenvalue, noise level known, minus the true one of that sample.
        double estimated_squared_cosine = 0.0;
    };
    /// The fluctuations are Gaussian (Paul 2007 for the eigenvalue). With m(z) the limit of the trace of
    /// (z - Z Z^T / n)^(-1) / n, the sample eigenvalue solves h(z) = 1/l and the squared cosine is -1 / (l z h'(z))
    /// there, where h is the quadratic form of that resolvent in the n scores on the spike, m + O(n^(-1/2)).
    /// Covariances of h and h' follow from the traces of powers of the resolvent, that is from m', m'' and m'''.
    /// The estimated cosine rises with the eigenvalue as the true one does, so that its error is smaller than the
    /// spread of either for large gamma, and free of the fourth cumulant: a sample whose scores are large by chance has
    /// the cosine of a larger spike, and looks like one. With e = l - 1 the error of log cosine^2 has the variance (2
    /// gamma l^2 / e^4) (1 + gamma / e^2) / (1 - gamma / e^2)^3 / n. `score_cumulant` is the fourth cumulant of a
    /// standardised score (kurtosis - 3), 0 for Gaussian data and, at first order, for any independent entries when the
    /// eigenvector is spread over many features. Nothing where the spike is not detectable.
    [[nodiscard]] std::optional<Spread> spread(Eigenvalue population, double score_cumulant = 0.0) const;

private:
    [[nodiscard]] double relative(Eigenvalue population) const;

    double gamma_;
    double root_gamma_;
    double noise_level_;
};

}  // namespace spiked::theory
