#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "theory/laws/tracy_widom.hpp"
#include "theory/symmetric/spiked_wigner.hpp"
#include "validation/claims/parts/fixture.hpp"

// Claims on symmetric matrices with spikes of both signs (the spiked Wigner model).

namespace spiked::validation {
namespace {

/// A fixture of symmetric blocks with these strengths, whose moduli fall; the threshold is 1.
Fixture symmetric_fixture(std::size_t size, const std::vector<double>& strengths,
                          const std::string& entries = "gaussian", const std::string& vectors = "haar") {
    Fixture fixture = make_fixture({Noise::white, 1.0, {}, entries}, size);
    fixture.model.symmetric = true;
    fixture.model.colouring = sim::Colouring::dense;
    fixture.model.left_vectors = sim::VectorLaw::parse(vectors, sim::MatrixSide::row);
    for (const double strength : strengths) fixture.model.strengths.push_back({strength});
    return fixture;
}

/// What the last spike of a block shows: the eigenvalue with its sign, and the squared overlap of the eigenvectors.
struct Seen {
    double eigenvalue = 0.0;
    double overlap = 0.0;
};

Seen last_spike(const DrawnBlock& drawn) {
    const std::size_t spikes = drawn.sample.left.n_cols;
    const auto vectors = drawn.block.vectors(spikes);
    const arma::uword at = spikes - 1;
    // The vectors of a symmetric matrix differ by the sign of the eigenvalue alone.
    const double sign = arma::dot(vectors.left.col(at), vectors.right.col(at)) > 0.0 ? 1.0 : -1.0;
    return {sign * drawn.block.singular_values()[at],
            std::pow(arma::dot(vectors.left.col(at), drawn.sample.left.col(at)), 2)};
}

const std::vector<double> both_signs = {3.0, -2.0};

/// The mean of eigenvalue or squared overlap of the spike -2 beside one of 3 over its limit, minus 1.
Criterion spike_limit(std::string name, bool of_vector, std::vector<Control> controls) {
    return {.name = std::move(name),
            .measures = std::string(of_vector ? "squared overlap of the eigenvectors" : "eigenvalue") +
                        " over its limit minus 1, spike of -2 thresholds beside one of 3, Gaussian entries",
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const Fixture fixture = symmetric_fixture(place.size, both_signs);
                const theory::SpikedWigner model;
                const auto limit_at = [&](double strength) {
                    return of_vector ? model.squared_overlap(strength).value : model.outlier(strength);
                };
                const double strength = both_signs.back();
                const double right = limit_at(strength);
                const double judged = limit_at((1.0 + 0.1 * place.fault_of("larger")) * strength);
                double other = right;
                if (place.control_is("strength")) other = strength;
                if (place.control_is("sign")) other = strength - 1.0 / strength;
                if (place.control_is("certain")) other = 1.0;
                const double offset = place.fault * (other / right - 1.0);  // linear in the size of the fault
                return [=](std::uint64_t replicate) {
                    const Seen seen = last_spike(fixture.decomposed(place, replicate));
                    return (of_vector ? seen.overlap : seen.eigenvalue) / judged - 1.0 - offset;
                };
            },
            .region = [](std::size_t size) { return around(0.0, margin_at(size, 0.02, 1.0)); },
            .quick = {{128, 1000}},
            .full = {{128, 2000}, {256, 800}},
            .negative_controls = std::move(controls)};
}

/// The square of the eigenvalue's deviation from its limit over the variance that theory gives, minus 1.
Criterion spike_deviation(Form form, std::string name, std::string setup, const std::string& entries,
                          const std::string& vectors, theory::WignerEntries of_theory, double margin,
                          std::vector<SizePlan> full, std::vector<Control> controls) {
    return {.form = form,
            .name = std::move(name),
            .measures =
                "squared deviation of the eigenvalue from its limit over the variance of the theory, minus 1, "
                "one spike at 2 thresholds, " +
                setup,
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const Fixture fixture = symmetric_fixture(place.size, {2.0}, entries, vectors);
                const theory::SpikedWigner model;
                theory::WignerEntries taken = of_theory;
                taken.excess_kurtosis *= 1.0 - place.fault_of("gaussian");
                const double deviation = model.spread(2.0, taken).value().outlier;
                const double variance =
                    std::pow(deviation, 2) / fixture.d() * (1.0 - 0.5 * place.fault_of("independent"));
                return [=](std::uint64_t replicate) {
                    const auto block = fixture.decomposed(place, replicate);
                    return std::pow(block.block.singular_values()[0] - model.outlier(2.0), 2) / variance - 1.0;
                };
            },
            .region = [margin](std::size_t size) { return around(0.0, margin_at(size, margin, 0.5)); },
            .quick = {full.front()},
            .full = full,
            .negative_controls = std::move(controls)};
}

/// A Hermitian block from a square one of independent real entries of variance 1/n: below the diagonal stand x_ij +
/// i x_ji over sqrt 2, so that Gaussian entries make the Gaussian unitary ensemble. With a strength other than 0 the
/// spike has the vector left + i right over sqrt 2.
struct HermitianSeen {
    arma::vec eigenvalues = {};  ///< ascending
    double overlap = 0.0;        ///< of the largest one with the spike
};

HermitianSeen hermitian_block(const Fixture& fixture, double strength, const TrialPlace& place,
                              std::uint64_t replicate) {
    const sim::SpikedSample drawn = fixture.draw(place, replicate);
    const arma::uword n = drawn.noise.n_rows;
    arma::cx_mat matrix(n, n);
    for (arma::uword j = 0; j < n; ++j)
        for (arma::uword i = j; i < n; ++i) {
            const std::complex<double> entry(drawn.noise(i, j), i == j ? 0.0 : drawn.noise(j, i));
            matrix(i, j) = i == j ? entry : std::sqrt(0.5) * entry;
            matrix(j, i) = std::conj(matrix(i, j));
        }
    HermitianSeen seen;
    if (strength == 0.0) {
        seen.eigenvalues = arma::eig_sym(matrix);
        return seen;
    }
    const arma::cx_vec vector = std::sqrt(0.5) * arma::cx_vec(drawn.left.col(0), drawn.right.col(0));
    arma::cx_mat vectors;
    arma::eig_sym(seen.eigenvalues, vectors, arma::cx_mat(matrix + strength * vector * vector.t()));
    seen.overlap = std::norm(arma::cdot(vectors.col(n - 1), vector));
    return seen;
}

enum class HermitianMeasure { eigenvalue, overlap, variance };

/// The same of a spike of 2 thresholds in Hermitian noise: eigenvalue or overlap over its limit, minus 1, or the
/// squared deviation of the eigenvalue over the variance of the theory, minus 1.
Criterion hermitian_spike(HermitianMeasure measure, std::string name, const std::string& measures, double margin,
                          double rate, std::vector<SizePlan> plan, std::vector<Control> controls) {
    return {.name = std::move(name),
            .measures = measures + ", one spike of 2 thresholds, Hermitian noise with complex Gaussian entries",
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const Fixture fixture = make_fixture({Noise::white, 1.0, {1.0}, "gaussian"}, place.size);
                const theory::SpikedWigner model(1.0, theory::Field::complex);
                const double strength = 2.0 * (1.0 + 0.1 * place.fault_of("larger"));
                const double outlier = model.outlier(strength), overlap = model.squared_overlap(strength).value;
                const double variance =
                    std::pow(model.spread(2.0).value().outlier, 2) / fixture.d() * (1.0 + place.fault_of("real"));
                return [=](std::uint64_t replicate) {
                    const HermitianSeen seen = hermitian_block(fixture, 2.0, place, replicate);
                    const double eigenvalue = seen.eigenvalues.back();
                    if (measure == HermitianMeasure::eigenvalue) return eigenvalue / outlier - 1.0;
                    if (measure == HermitianMeasure::overlap) return seen.overlap / overlap - 1.0;
                    return std::pow(eigenvalue - outlier, 2) / variance - 1.0;
                };
            },
            .region = [=](std::size_t size) { return around(0.0, margin_at(size, margin, rate)); },
            .quick = {plan.front()},
            .full = plan,
            .negative_controls = std::move(controls)};
}

constexpr double false_alarms = 0.05;

/// The fraction of matrices of Hermitian noise whose largest modulus of an eigenvalue exceeds the critical one.
Criterion hermitian_edge() {
    return {.name = "level-hermitian",
            .measures =
                "fraction of Hermitian noise with complex Gaussian entries whose largest modulus of an eigenvalue "
                "exceeds the critical value of level .05",
            .summary = Summary::share,
            .prepare = [](const TrialPlace& place) -> Trial {
                const Fixture fixture = make_fixture({Noise::white, 1.0, {}, "gaussian"}, place.size);
                const auto critical_of = [&](theory::Field field) {
                    return theory::SpikedWigner(1.0, field).critical_modulus(false_alarms, place.size);
                };
                const double right = critical_of(theory::Field::complex);
                const double critical = right + place.fault_of("real") * (critical_of(theory::Field::real) - right);
                return [=](std::uint64_t replicate) {
                    const arma::vec values = hermitian_block(fixture, 0.0, place, replicate).eigenvalues;
                    return std::max(values.back(), -values.front()) > critical ? 1.0 : 0.0;
                };
            },
            .region = [](std::size_t size) { return around(false_alarms, margin_at(size, 0.015, 1.0 / 3.0)); },
            .quick = {{96, 6000}},
            .full = {{96, 6000}},
            .negative_controls = {{"real", "the critical value of real entries",
                                   FaultSize{1.0, "of the way to that of real entries", 0.0,
                                             "{} % of the way to the critical value of real entries"}}}};
}

/// The fraction of matrices of noise whose largest modulus of an eigenvalue exceeds the critical one.
Criterion edge() {
    return {.name = "level",
            .measures =
                "fraction of Gaussian symmetric noise whose largest modulus of an eigenvalue exceeds the "
                "critical value of level .05",
            .summary = Summary::share,
            .prepare = [](const TrialPlace& place) -> Trial {
                const Fixture fixture = symmetric_fixture(place.size, {});
                const theory::SpikedWigner model;
                const double right = model.critical_modulus(false_alarms, place.size);
                double wrong = right;
                if (place.control_is("one-end"))
                    wrong = model.edge_at(place.size) +
                            model.edge_unit(place.size) * theory::tracy_widom_upper_quantile(false_alarms);
                if (place.control_is("independent"))
                    wrong = std::sqrt(fixture.law->bulk_edge().value +
                                      theory::tracy_widom_upper_quantile(false_alarms) /
                                          (fixture.law->tracy_widom_scale() * std::pow(fixture.d(), 2.0 / 3.0)));
                const double critical = right + place.fault * (wrong - right);
                return [=](std::uint64_t replicate) {
                    return fixture.decomposed(place, replicate).block.singular_values()[0] > critical ? 1.0 : 0.0;
                };
            },
            .region = [](std::size_t size) { return around(false_alarms, margin_at(size, 0.015, 1.0 / 3.0)); },
            .quick = {{128, 8000}},
            .full = {{128, 8000}},
            .negative_controls = {{"one-end", "the law of one end of the spectrum",
                                   FaultSize{1.0, "of the way to the critical value of one end", 0.0,
                                             "{} % of the way to the critical value of one end"}},
                                  {"independent", "the critical value of independent entries",
                                   FaultSize{1.0, "of the way to that of independent entries", 0.0,
                                             "{} % of the way to the critical value of independent entries"}}}};
}

}  // namespace

std::vector<Claim> symmetric_claims() {
    const Control larger{"larger", "a strength 10 % larger",
                         FaultSize{0.1, "of the strength", 0.0, "a strength {} % larger"}};
    const Control strength =
        linear({"strength", "the strength taken for the eigenvalue",
                FaultSize{1.0, "of the way to the strength", 0.0, "{} % of the way to the strength"}});
    const Control sign = linear(
        {"sign", "the noise moves a negative eigenvalue up as it does a positive one",
         FaultSize{1.0, "of the way to the eigenvalue moved up", 0.0, "{} % of the way to the eigenvalue moved up"}});
    const Control certain =
        linear({"certain", "the observed vector taken for the true one",
                FaultSize{1.0, "of the way to an overlap of 1", 0.0, "{} % of the way to an overlap of 1"}});
    return {
        {.id = "wigner.eigenvalue",
         .place = "Capitaine, Donati-Martin and Feral 2009; Benaych-Georges and Nadakuditi 2011",
         .statement =
             "a spike s of a symmetric matrix, of either sign, gives an eigenvalue s + sigma^2 / s, of variance "
             "2 sigma^2 (1 - sigma^2 / s^2) / n (half of it for a Hermitian matrix), and a squared overlap "
             "1 - sigma^2 / s^2",
         .plain = {"Eigenvalues of a symmetric matrix are too large by an amount that can be computed, whatever their "
                   "sign.",
                   "relative difference of eigenvalue and limit", "mean"},
         .corrected = "so for a vector spread over many coordinates; for others the fourth cumulant of the entries and "
                      "the variance of the diagonal add to the variance",
         .criteria =
             {spike_limit("mean", false, {larger, strength, sign}), spike_limit("overlap", true, {larger, certain}),
              spike_deviation(Form::printed, "variance", "Gaussian entries, Haar vectors", "gaussian", "haar", {}, 0.2,
                              {{128, 3000}, {256, 1500}},
                              {{"independent", "half the variance, that of independent entries",
                                FaultSize{0.5, "of the variance left out", 0.0, "{} % of the variance left out"}}}),
              hermitian_spike(HermitianMeasure::eigenvalue, "mean-hermitian", "eigenvalue over its limit minus 1", 0.02,
                              1.0, {{96, 800}}, {larger}),
              hermitian_spike(HermitianMeasure::overlap, "overlap-hermitian",
                              "squared overlap of the eigenvectors over its limit minus 1", 0.02, 1.0, {{96, 1500}},
                              {larger}),
              hermitian_spike(HermitianMeasure::variance, "variance-hermitian",
                              "squared deviation of the eigenvalue from its limit over the variance of the theory, "
                              "minus 1",
                              0.2, 0.5, {{96, 3000}},
                              {{"real", "the variance of real entries",
                                FaultSize{1.0, "of the variance added", 0.0, "{} % of the variance added"}}}),
              spike_deviation(
                  Form::corrected, "variance-localised", "sparse:0.1 entries, a vector on 2 coordinates", "sparse:0.1",
                  "localised:2", {.excess_kurtosis = 7.0, .diagonal_variance = 2.0, .fourth_powers = 0.5}, 0.12,
                  {{256, 6000}},
                  {{"gaussian", "the variance of Gaussian entries",
                    FaultSize{1.0, "of the fourth cumulant left out", 0.0, "{} % of the fourth cumulant left out"}}})}},
        {.id = "wigner.edge",
         .place = "Tracy and Widom 1996; Johnstone and Ma 2012; Lee and Yin 2014",
         .statement =
             "the ends of the spectrum of symmetric noise fluctuate by sigma n^(-2/3) and the Tracy-Widom law of "
             "order 1, of Hermitian noise of order 2, each for itself",
         .plain = {"The critical value for components of a symmetric matrix is exceeded by noise as often as it says.",
                   "fraction of noise matrices above it", "level"},
         .corrected = "",
         .criteria = {edge(), hermitian_edge()}}};
}

}  // namespace spiked::validation
