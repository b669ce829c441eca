#include <cmath>
#include <utility>

#include "theory/laws/spiked_covariance.hpp"
#include "validation/claims/parts/fixture.hpp"

// Claims on the principal components of samples of a covariance with one spike (Johnstone's model).

namespace spiked::validation {
namespace {

/// Samples of a covariance that is I but for one eigenvalue, in the scale of a fixture: noise of variance 1/d in place
/// of 1.
struct OneSpike {
    Fixture fixture;
    Eigenvalue population = {};
    theory::SpikedCovariance theory;

    [[nodiscard]] double samples() const { return static_cast<double>(fixture.rows()); }
    /// The largest eigenvalue of the sample covariance.
    [[nodiscard]] double sample_eigenvalue(estimators::AnalysedBlock& block) const {
        return std::pow(block.singular_values()[0], 2) * fixture.d() / samples();
    }
};

constexpr double samples_over_features = 2.0;

OneSpike one_spike(double thresholds, std::size_t features, const std::string& scores) {
    OneSpike spike{make_fixture({Noise::white, samples_over_features, {thresholds}}, features),
                   {},
                   theory::SpikedCovariance(AspectRatio(samples_over_features))};
    spike.fixture.model.left_vectors = sim::VectorLaw::parse(scores, sim::MatrixSide::row);
    spike.population = {1.0 + std::pow(spike.fixture.strength(0), 2) / samples_over_features};
    return spike;
}

/// The mean of the sample eigenvalue over its limit, or of the squared cosine over its limit, minus 1.
Criterion limit(std::string name, bool of_vector, std::vector<Control> controls) {
    return {
        .name = std::move(name),
        .measures = std::string(of_vector ? "squared cosine between the eigenvectors of sample and population"
                                          : "largest sample eigenvalue") +
                    " over its limit minus 1, one spike at 2 thresholds (eigenvalue 3.83), n/p = 2",
        .summary = Summary::mean,
        .prepare = [=](const TrialPlace& place) -> Trial {
            const OneSpike spike = one_spike(2.0, place.size, "scores:gaussian");
            const auto limit_at = [&](const theory::SpikedCovariance& theory, double larger) {
                const Eigenvalue at{(1.0 + larger) * spike.population.value};
                return of_vector ? theory.squared_cosine(at).value : theory.sample_eigenvalue(at).value;
            };
            const double right = limit_at(spike.theory, 0.0);
            double wrong = right;
            if (place.control_is("larger")) wrong = limit_at(spike.theory, 0.1 * place.fault);
            double offset = 0.0;  // linear in the size of the fault
            if (place.control_is("population")) offset = place.fault * (spike.population.value / right - 1.0);
            if (place.control_is("sides-swapped"))
                offset =
                    place.fault *
                    (limit_at(theory::SpikedCovariance(AspectRatio(1.0 / samples_over_features)), 0.0) / right - 1.0);
            return [=](std::uint64_t replicate) {
                const DrawnBlock drawn = spike.fixture.decomposed(place, replicate);
                const double found =
                    of_vector ? drawn.squared_overlap(sim::MatrixSide::column) : spike.sample_eigenvalue(drawn.block);
                return found / wrong - 1.0 - offset;
            };
        },
        .region = [](std::size_t size) { return around(0.0, margin_at(size, 0.02, 1.0)); },
        .quick = {{128, 1500}},
        .full = {{128, 1500}, {256, 800}},
        .negative_controls = std::move(controls)};
}

/// The square of the sample eigenvalue's deviation from its limit over the variance that theory gives, minus 1.
Criterion spread(Form form, std::string name, const std::string& scores, double kurtosis, std::string setup,
                 std::vector<Control> controls) {
    return {.form = form,
            .name = std::move(name),
            .measures =
                "squared deviation of the largest sample eigenvalue from its limit over the variance of the "
                "theory, minus 1, one spike at 3 thresholds (eigenvalue 7.36), n/p = 2, " +
                setup,
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const bool fixed = place.control_is("fixed");
                const OneSpike spike = one_spike(3.0, place.size, fixed ? "haar" : scores);
                const double l = spike.population.value;
                // The score on the spike is sqrt(l - 1) times a score of the law, plus Gaussian noise of variance 1.
                const double cumulant = (kurtosis - 3.0) * std::pow(1.0 - 1.0 / l, 2);
                const auto variance_at = [&](double of_scores) {
                    return std::pow(spike.theory.spread(spike.population, of_scores).value().sample_eigenvalue, 2) /
                           spike.samples();
                };
                const double variance = variance_at(cumulant * (1.0 - place.fault_of("gaussian")));
                const double predicted = spike.theory.sample_eigenvalue(spike.population).value;
                return [=](std::uint64_t replicate) {
                    estimators::AnalysedBlock& block = spike.fixture.decomposed(place, replicate).block;
                    return std::pow(spike.sample_eigenvalue(block) - predicted, 2) / variance - 1.0;
                };
            },
            .region = [](std::size_t size) { return around(0.0, margin_at(size, 0.2, 0.5)); },
            .quick = {{128, 3000}},
            .full = {{128, 3000}, {256, 3000}},
            .negative_controls = std::move(controls)};
}

}  // namespace

std::vector<Claim> principal_component_claims() {
    const Control larger{"larger", "a population eigenvalue 10 % larger",
                         FaultSize{0.1, "of the population eigenvalue", 0.0, "a population eigenvalue {} % larger"}};
    const Control swapped = linear({"sides-swapped", "features over samples for samples over features",
                                    FaultSize{1.0, "of the way to the limit with n and p interchanged", 0.0,
                                              "{} % of the way to the limit with n and p interchanged"}});
    return {{.id = "pca.eigenvalue",
             .place = "Johnstone 2001; Baik and Silverstein 2006; Paul 2007, Theorem 3",
             .statement =
                 "a spike l of the covariance of n samples gives a sample eigenvalue of mean l (1 + gamma / (l - 1)) "
                 "and variance 2 l^2 (1 - gamma / (l - 1)^2) / n",
             .plain = {"Sample eigenvalues are too large, by an amount that can be computed, and vary as stated.",
                       "relative difference of sample eigenvalue and limit", "mean"},
             .corrected = "so for Gaussian scores; with others the fourth cumulant of the scores adds to the 2",
             .criteria = {limit("mean", false,
                                {larger,
                                 linear({"population", "the population eigenvalue taken for the mean of the sample's",
                                         FaultSize{1.0, "of the way to the population eigenvalue", 0.0,
                                                   "{} % of the way to the population eigenvalue"}}),
                                 swapped}),
                          spread(Form::printed, "variance", "scores:gaussian", 3.0, "Gaussian scores",
                                 {{"fixed", "a fixed signal of the same size in place of random scores"}}),
                          spread(Form::corrected, "variance-rademacher", "scores:rademacher", 1.0, "scores 1 and -1",
                                 {{"gaussian", "the variance of Gaussian scores",
                                   FaultSize{1.0, "of the fourth cumulant left out", 0.0,
                                             "{} % of the fourth cumulant left out"}}})}},
            {.id = "pca.vector",
             .place = "Paul 2007, Theorem 4; Benaych-Georges and Nadakuditi 2011",
             .statement = "the squared cosine between the eigenvectors of sample and population is "
                          "(1 - gamma / (l - 1)^2) / (1 + gamma / (l - 1))",
             .plain = {"Principal components are tilted away from the population's by an angle that can be computed.",
                       "relative difference of squared cosine and limit", "cosine"},
             .corrected = "",
             .criteria = {limit("cosine", true, {larger, swapped})}}};
}

}  // namespace spiked::validation
