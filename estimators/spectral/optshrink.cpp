#include "estimators/spectral/optshrink.hpp"

#include "core/runtime/error.hpp"
#include "estimators/ranks/rank_rule.hpp"
#include "estimators/spectral/empirical_law.hpp"
#include "estimators/spectral/spectral_family.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

Shrinkage optshrink(std::span<const double> singular_values, Shape shape, std::size_t rank, theory::Loss loss) {
    const RelativeSpectrum spectrum(singular_values, shape);
    if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
    if (rank >= spectrum.size())
        return nothing_found(fmt::format("rank {} leaves none of {} singular values to estimate the noise: set to 0",
                                         rank, spectrum.size()));
    const auto& lambda = spectrum.eigenvalues;
    if (lambda[rank] == 0.0)
        return unshrunk(spectrum, rank, "the block is exactly of this rank or less: nothing to shrink");
    const std::span<const double> noise = std::span(lambda).subspan(rank);
    const EmpiricalLaw law(noise, {shape.rows - rank, shape.columns - rank});
    Shrinkage result;
    result.rank = rank;
    double strength_squares = 0.0;
    double weight_squares = 0.0;
    for (std::size_t i = 0; i < rank; ++i) {
        OutlierEstimate outlier;
        if (lambda[i] > noise[0]) outlier = estimate_outlier(law, shape, Eigenvalue{lambda[i]});
        const double shrunk = theory::shrink(outlier.strength, outlier.overlap_left, outlier.overlap_right, loss);
        strength_squares += outlier.strength * outlier.strength;
        weight_squares += shrunk * shrunk;
        append(result, {outlier.strength * spectrum.unit, outlier.overlap_left, outlier.overlap_right,
                        std::clamp(shrunk * spectrum.unit, 0.0, singular_values[i])});
    }
    if (loss == theory::Loss::frobenius && strength_squares > 0.0) {
        const double error = strength_squares - weight_squares;
        result.expected_error = ErrorEstimate{error * spectrum.unit * spectrum.unit, error / strength_squares};
    }
    for (const double mu : noise) result.noise_eigenvalues.push_back(mu * spectrum.unit * spectrum.unit);
    return result;
}

SpectralFamily optshrink_family() {
    return {{{"optshrink",
              "optimal shrinkage at the given rank, with the noise law of the remaining singular values; estimates its "
              "own squared error",
              rank_options(), "Nadakuditi 2014"},
             false,
             "2"},
            [](const NameOptions& named, theory::Loss loss, const KnownLaw&) -> SpectralEstimator {
                const GivenRank rank = required_rank(named, "optshrink:2");
                SpectralEstimator estimator{
                    named.text(),
                    [rank, loss](std::span<const double> singular_values, Shape shape) {
                        return optshrink(singular_values, shape, rank.of({singular_values, shape}), loss);
                    },
                    rank.fixed ? *rank.fixed + 1 : 0};
                if (rank.block_rule)
                    estimator.estimate_block = ranked_by_block(
                        rank.block_rule,
                        [loss](std::span<const double> singular_values, Shape shape, std::size_t found) {
                            return optshrink(singular_values, shape, found, loss);
                        });
                return estimator;
            }};
}

}  // namespace spiked::estimators
