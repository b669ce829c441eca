#pragma once
#include <armadillo>
#include <cmath>
#include <functional>
#include <vector>

#include "validation/claims/parts/fixture.hpp"

// Denoised blocks for the claims on the residual R = S~ - S^ (residual.cpp, residual_bias.cpp, residual_proof.cpp).
namespace spiked::validation {

inline const std::vector<double> two_spikes{3.0, 2.0};

/// A block with its eOptShrink estimate for the known rank.
struct Denoised {
    sim::SpikedSample sample;
    std::vector<double> observed;  ///< singular values
    estimators::Shrinkage shrinkage;
    estimators::SingularVectors vectors;
    arma::mat signal;    ///< S^
    arma::mat residual;  ///< R
};

/// Negative controls: `truncated` keeps the observed values, `kept` removes nothing, `rank-1` removes one component too
/// few, `all` removes everything. Positive controls: `over-removed` removes 1.3 times the observed components, `added`
/// adds .3 of them, `true-vectors` combines the shrunk values with the vectors of S, `one-direction` replaces the noise
/// by its quadratic form in the first pair of observed vectors.
[[nodiscard]] Denoised denoise(const Fixture& fixture, const TrialPlace& place, std::uint64_t replicate,
                               theory::Loss loss = theory::Loss::frobenius);

/// Squared Frobenius norm.
[[nodiscard]] inline double energy(const arma::mat& block) { return arma::accu(arma::square(block)); }

/// A trial that measures one number of the denoised block of a fixture.
template <class Measure>
std::function<Trial(const TrialPlace&)> of_denoised(FixtureShape shape, Measure measure,
                                                    theory::Loss loss = theory::Loss::frobenius) {
    return [=](const TrialPlace& place) -> Trial {
        return [=, fixture = make_fixture(shape, place.size)](std::uint64_t replicate) {
            return measure(fixture, denoise(fixture, place, replicate, loss));
        };
    };
}

/// The limit of a sum over the spikes of a fixture of `term`(strength, limit of the observed singular value, limit of
/// the shrunk value).
template <class Term>
double sum_of_spikes(const Fixture& fixture, Term term) {
    double sum = 0.0;
    for (const auto& strength : fixture.model.strengths) {
        const auto spike = fixture.law->spike(strength);
        sum += term(strength.value, std::sqrt(spike.outlier.value), spike.shrunk(theory::Loss::frobenius).value);
    }
    return sum;
}

inline const Control truncated{"truncated", "observed values kept as they are",
                               FaultSize{1.0, "of the shrinkage left out", 0.0, "{} % of the shrinkage left out"}};
inline const Control signal_kept{"kept", "nothing removed: R = S~",
                                 FaultSize{1.0, "of what is removed, too little", 0.0, "{} % too little removed"}};
inline const Control all_removed{
    "all", "everything removed: S^ = S~, all of the noise in it, R = 0",
    FaultSize{1.0, "of the residual, removed too", 0.0, "{} % of the residual removed too"}};
inline const std::vector<SizePlan> quick_sizes{{128, 600}};
inline const std::vector<SizePlan> full_sizes{{128, 1400}, {256, 700}};

}  // namespace spiked::validation
