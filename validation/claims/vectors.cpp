#include <fmt/format.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <complex>

#include "theory/laws/bulk_distribution.hpp"
#include "validation/claims/parts/fixture.hpp"

// Claims on the singular vectors of S~ and Z: overlaps with the signal and delocalisation.

namespace spiked::validation {
namespace {

/// Squared inner product of the true and the observed vector of one spike, minus its limit.
Trial overlap_trial(const TrialPlace& place, const FixtureShape& shape, sim::MatrixSide side) {
    const Fixture fixture = make_fixture(shape, place.size);
    const auto spike = fixture.spike(0);
    const bool left = side == sim::MatrixSide::row;
    double predicted = left ? spike.overlap_left.value : spike.overlap_right.value;
    const double other = left ? spike.overlap_right.value : spike.overlap_left.value;
    predicted += place.fault_of("other-side") * (other - predicted) + place.fault_of("certain") * (1.0 - predicted);
    return
        [=](std::uint64_t replicate) { return fixture.decomposed(place, replicate).squared_overlap(side) - predicted; };
}

Claim overlap(std::string id, sim::MatrixSide side) {
    const bool left = side == sim::MatrixSide::row;
    const std::string sides = left ? "left" : "right";
    const Control certain =
        linear({"certain", "overlap 1",
                FaultSize{1.0, "of what is missing to overlap 1", 0.0, "an overlap {} % of the way to 1"}});
    // Its size is that at d = 128; it is nearly the same at all sizes.
    const auto other_side = [=](Noise noise, double aspect) {
        const auto spike = make_fixture({noise, aspect, {2.0}}, 128).spike(0);
        const double off = (spike.overlap_right.value - spike.overlap_left.value) * (left ? 1.0 : -1.0);
        const char* const how = off > 0.0 ? "too large" : "too small";
        return linear({"other-side", "the overlap of the other side",
                       FaultSize{std::abs(off), how, 0.0, fmt::format("an overlap {{}} {}", how)}});
    };
    const auto level = [=](Noise noise, double aspect) -> Criterion {
        return {.name = fmt::format("level-{}", name_of(noise)),
                .measures = fmt::format("squared overlap of the {} vectors minus its limit, one spike at 2 thresholds, "
                                        "{} noise, n/d = {}",
                                        sides, name_of(noise), aspect),
                .summary = Summary::mean,
                .prepare =
                    [=](const TrialPlace& place) {
                        return overlap_trial(place, {noise, aspect, {2.0}}, side);
                    },
                .region = [](std::size_t size) { return around(0.0, margin_at(size, 0.03, 1.0)); },
                .quick = {{128, 800}},
                .full = {{128, 1400}, {256, 700}, {512, 600}},
                .negative_controls = {other_side(noise, aspect), certain}};
    };
    return {.id = std::move(id),
            .place = "paper, Section 2.3, overlaps",
            .statement = fmt::format("the squared overlap of the true and observed {} vectors of a spike is a_{}(d)",
                                     sides, left ? 1 : 2),
            .plain = {fmt::format("How well the {}' directions are found is as predicted.", left ? "rows" : "columns"),
                      "squared overlap minus prediction", "level-coloured"},
            .criteria = {level(Noise::white, 0.5),
                         level(Noise::coloured, 0.5),
                         {.name = "rate-coloured",
                          .measures = fmt::format("squared overlap of the {} vectors minus its limit, one spike at 2 "
                                                  "thresholds, coloured noise, n/d = 0.5",
                                                  sides),
                          .summary = Summary::rate,
                          .prepare =
                              [=](const TrialPlace& place) {
                                  return overlap_trial(place, {Noise::coloured, 0.5, {2.0}}, side);
                              },
                          .region = [](std::size_t) { return at_most(-0.5, 0.15); },
                          .quick = {{32, 4000}, {64, 3000}, {128, 1500}},
                          .full = {{64, 4500}, {128, 3000}, {256, 1500}, {512, 450}},
                          .negative_controls = {certain}}}};
}

/// kappa of the i-th non-outlier vector behind one spike.
double kappa_of(std::size_t i, double d) { return std::pow(static_cast<double>(i) / d, 2.0 / 3.0); }

/// Maximum of <u, xi_i>^2 ((d - alpha)^2 + kappa_i) over the first half of the non-outlier vectors of both sides, times
/// d, divided by log d.
Trial delocalisation_trial(const TrialPlace& place, Noise noise) {
    const Fixture fixture = make_fixture({noise, 1.0, {2.0}}, place.size);
    const double gap = fixture.strength(0) - fixture.law->detection_threshold().value;
    const double leak = place.fault_of("outlier");
    return [=](std::uint64_t replicate) {
        const auto [sample, block] = fixture.decomposed(place, replicate);
        const std::size_t count = block.shape().short_side() / 2;
        const estimators::SingularVectors seen = block.vectors(count);
        double largest = 0.0;
        for (arma::uword i = 1; i < count; ++i) {
            const double kappa = kappa_of(i, fixture.d());
            const auto overlap_with = [&](const arma::mat& vectors, const arma::mat& truth) {
                const auto square = [&](arma::uword k) { return std::pow(arma::dot(vectors.col(k), truth.col(0)), 2); };
                return i == 1 && leak > 0.0 ? (1.0 - leak) * square(1) + leak * square(0) : square(i);
            };
            largest = std::max({largest, overlap_with(seen.left, sample.left) * (gap * gap + kappa),
                                overlap_with(seen.right, sample.right) * (gap * gap + kappa)});
        }
        return fixture.d() * largest / std::log(fixture.d());
    };
}

// Bounds of order 1/d for squared coordinates of singular vectors. In the limit a coordinate of the vector at
// eigenvalue E is normal with variance w(E) / d, where w is the fraction of the imaginary part of the resolvent at E
// that belongs to that direction, over its mean over all directions. So the constants follow from the law alone.

/// Scaled weights, one for each vector and side of which the maximum is taken: d times the mean square.
using Weights = std::vector<double>;

/// The eigenvalue that the k-th largest is near, k from 1, and a point just above it in the complex plane.
std::complex<double> near_eigenvalue(const theory::BulkDistribution& bulk, std::size_t k, double count) {
    const double place = bulk.quantile(1.0 - (static_cast<double>(k) - 0.5) / count).value;
    return {place, 1e-7 * place};
}

/// m_1c, the transform weighted by A, at these points, from (1/d) sum 1 / (1 + b m_1c) = -z m_right. Newton's method
/// follows it from the edge, where it is real.
std::vector<std::complex<double>> weighted_transforms(const Fixture& fixture, const theory::BulkDistribution& bulk,
                                                      const std::vector<std::complex<double>>& points) {
    using Complex = std::complex<double>;
    const arma::vec& b = fixture.model.column.eigenvalues();
    const Eigenvalue edge = fixture.law->bulk_edge();
    const double at_edge = -edge.value * fixture.law->stieltjes_right(edge);
    double low = -1.0 / b.max();
    double high = 0.0;
    for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        (arma::mean(1.0 / (1.0 + middle * b)) > at_edge ? low : high) = middle;
    }
    Complex m(high, 0.05 * std::abs(high));
    std::vector<Complex> found;
    for (const Complex z : points) {
        const Complex target = -z * bulk.stieltjes(z).right;
        for (int i = 0; i < 200; ++i) {
            Complex off = -target;
            Complex slope = 0.0;
            for (const double value : b) {
                const Complex term = 1.0 / (1.0 + m * value);
                off += term / fixture.d();
                slope -= value * term * term / fixture.d();
            }
            Complex next = m - off / slope;
            if (!(next.imag() > 0.0)) next = {next.real(), 0.5 * m.imag()};
            const bool same = std::abs(next - m) < 1e-13 * std::abs(m);
            m = next;
            if (same) break;
        }
        found.push_back(m);
    }
    return found;
}

/// Weights of a channel of variance `variance` in the first `count` right vectors of the noise.
Weights channel_weights(const Fixture& fixture, double variance, std::size_t count) {
    const theory::BulkDistribution bulk(*fixture.law);
    std::vector<std::complex<double>> points;
    for (std::size_t k = 1; k <= count; ++k) points.push_back(near_eigenvalue(bulk, k, fixture.d()));
    const auto transforms = weighted_transforms(fixture, bulk, points);
    Weights weights;
    for (std::size_t k = 0; k < count; ++k) {
        const auto share = [&](double b) { return (-1.0 / (points[k] * (1.0 + transforms[k] * b))).imag(); };
        double mean = 0.0;
        for (const double b : fixture.model.column.eigenvalues()) mean += share(b) / fixture.d();
        weights.push_back(share(variance) / mean);
    }
    return weights;
}

/// Weights of the vectors u and v of a spike in the non-outlier vectors, times (d - alpha)^2 + kappa_i. The resolvent
/// of S~ in the direction u is that of Z over 1 - d^2 T, in the direction v as well.
Weights spike_weights(const Fixture& fixture) {
    const theory::BulkDistribution bulk(*fixture.law);
    const double strength = fixture.strength(0);
    const double gap = strength - fixture.law->detection_threshold().value;
    Weights weights;
    for (std::size_t i = 1; i < fixture.columns() / 2; ++i) {
        const auto z = near_eigenvalue(bulk, i, fixture.d());
        const auto [left, right] = bulk.stieltjes(z);
        const auto from_spike = 1.0 - strength * strength * z * left * right;
        const double kappa = kappa_of(i, fixture.d());
        for (const auto& transform : {left, right})
            weights.push_back((transform / from_spike).imag() / transform.imag() * (gap * gap + kappa));
    }
    return weights;
}

/// The value of d zeta^2 / log d that the largest of these coordinates exceeds in `share` of the blocks at most: the
/// probabilities of all of them add up to it. A coordinate of weight w is g / |g|, where g has variance w in this
/// direction and d - w in all others together, so that it cannot exceed 1.
double exceeded_in(double share, const Weights& weights, double d) {
    const boost::math::chi_squared square(1);
    const auto probability = [&](double c) {
        double sum = 0.0;
        for (const double w : weights) {
            const double x = c * std::log(d);
            if (x < d) sum += boost::math::cdf(boost::math::complement(square, x * (d - w) / (w * (d - x))));
        }
        return sum;
    };
    double low = 0.0;
    double high = d / std::log(d);
    for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        (probability(middle) > share ? low : high) = middle;
    }
    return high;
}

/// An upper bound "of order a, up to log d" in two strengthened forms that can be tested: a high quantile of the
/// statistic divided by a log d does not grow, and at most 1 % of the trials exceed what the law says 1 in 10^4 does.
struct UpperBound {
    Form form = Form::printed;
    std::string name;
    std::string statistic;  ///< already divided by its order and log d
    std::function<Weights(std::size_t size)> weights;
    std::function<Trial(const TrialPlace&)> prepare;
    std::vector<Control> growth_faults;
    std::vector<Control> exceedance_faults;
    std::vector<Control> positive_controls = {};
    /// Whether the growth is that of the quantile over the quantile of the law at the same size, where the law's own
    /// quantile still rises towards its limit.
    bool against_law = false;
};

std::vector<Criterion> criteria_of(const UpperBound& bound) {
    constexpr double level = 0.99;
    return {{.form = bound.form,
             .name = "growth-" + bound.name,
             .measures = fmt::format("{} quantile of {}{}, against d", level, bound.statistic,
                                     bound.against_law ? " over the quantile of the law of the noise" : ""),
             .summary = Summary::growth,
             .prepare = [=](const TrialPlace& place) -> Trial {
                 const double unit = bound.against_law ? exceeded_in(1.0 - level, bound.weights(place.size),
                                                                     static_cast<double>(place.size))
                                                       : 1.0;
                 return [=, statistic = bound.prepare(place)](std::uint64_t replicate) {
                     return statistic(replicate) / unit;
                 };
             },
             .region = [](std::size_t) { return at_most(0.0, 0.25); },
             .quick = {},
             .full = {{32, 6000}, {64, 6000}, {128, 6000}},
             .negative_controls = bound.growth_faults,
             .positive_controls = bound.positive_controls,
             .level = level},
            {.form = bound.form,
             .name = "exceedance-" + bound.name,
             .measures = fmt::format("fraction of trials with {} above what the law of the noise lets 1 block in 10^4 "
                                     "exceed",
                                     bound.statistic),
             .summary = Summary::share,
             .prepare = [=](const TrialPlace& place) -> Trial {
                 const double most = exceeded_in(1e-4, bound.weights(place.size), static_cast<double>(place.size));
                 return [=, statistic = bound.prepare(place)](std::uint64_t replicate) {
                     return statistic(replicate) > most ? 1.0 : 0.0;
                 };
             },
             .region = [](std::size_t) { return at_most(0.0, 0.01); },
             .quick = {{64, 2500}},
             .full = {{128, 2500}},
             .negative_controls = bound.exceedance_faults,
             .positive_controls = bound.positive_controls}};
}

UpperBound delocalisation(Noise noise) {
    const Control outlier{"outlier", "the outlier's overlap in place of that of the vector behind it",
                          FaultSize{1.0, "of the outlier's squared overlap, in the vector behind it", 0.0,
                                    "{} % of the outlier's squared overlap in the vector behind it"}};
    return {.form = Form::printed,
            .name = std::string(name_of(noise)),
            .statistic = fmt::format("max d <u, xi_i>^2 ((d - alpha)^2 + kappa_i) / log d over i up to half the size "
                                     "and both sides, one spike at 2 thresholds, {} noise",
                                     name_of(noise)),
            .weights =
                [=](std::size_t size) {
                    return spike_weights(make_fixture({noise, 1.0, {2.0}}, size));
                },
            .prepare = [=](const TrialPlace& place) { return delocalisation_trial(place, noise); },
            .growth_faults = {outlier},
            .exceedance_faults = {outlier}};
}

/// A channel of the noise, and how many of the right vectors are looked at.
struct ChannelSetup {
    Noise noise = Noise::white;
    bool first = false;        ///< the first channel, which has the largest variance; otherwise the last
    double variance = 0.0;     ///< of that channel; 0: as it is
    bool all_vectors = false;  ///< or the first sqrt(d) of them
};

/// How many times the largest variance a channel has in the control `detached`.
constexpr double detached_variance = 4.0;
/// How many times its own variance it has in the control `louder`.
constexpr double louder_variance = 3.0;

/// For the growth, which a larger variance alone does not change. `own` is the variance of the channel over the
/// largest.
Control detached(double own) {
    return {
        "detached",
        fmt::format("the variance of that channel {} times the largest: an eigenvalue of its own", detached_variance),
        FaultSize{detached_variance, "times the largest variance, in one channel", own,
                  "a channel with {} times the largest variance"}};
}

Control louder() {
    return {
        "louder", fmt::format("{} times its variance in that channel", louder_variance),
        FaultSize{louder_variance, "times its variance, in one channel", 1.0, "a channel with {} times its variance"}};
}

/// Maximum of d zeta_k(j)^2 / log d at that channel j.
Trial isotropic_trial(const TrialPlace& place, const ChannelSetup& setup) {
    Fixture fixture = make_fixture({setup.noise, 1.0, {}}, place.size);
    const arma::uword channel = setup.first ? 0 : fixture.columns() - 1;
    arma::vec variances = fixture.model.column.eigenvalues();
    const double largest = variances.max();
    if (setup.variance > 0.0 && !place.control_is("even")) variances(channel) = setup.variance;
    variances(channel) += place.fault_of("detached") * (detached_variance * largest - variances(channel));
    variances(channel) *= 1.0 + place.fault_of("louder") * (louder_variance - 1.0);
    fixture.model.column = sim::Covariance::diagonal(variances);
    return [=, fixture = std::move(fixture)](std::uint64_t replicate) {
        // Without a signal the block is the noise.
        estimators::AnalysedBlock& noise = fixture.decomposed(place, replicate).block;
        const std::size_t near = static_cast<std::size_t>(std::sqrt(fixture.d()));
        const arma::mat right = noise.vectors(setup.all_vectors ? place.size : near).right;
        return fixture.d() * arma::max(arma::square(right.row(channel))) / std::log(fixture.d());
    };
}

Weights isotropic_weights(const ChannelSetup& setup, std::size_t size) {
    const Fixture fixture = make_fixture({setup.noise, 1.0, {}}, size);
    const arma::vec& variances = fixture.model.column.eigenvalues();
    const double own = setup.first ? variances.front() : variances.back();
    // The channel of small variance has a vector of its own; the bound is that of a channel like the others.
    const bool like_others = setup.variance > 0.0 && setup.all_vectors;
    return channel_weights(fixture, setup.variance > 0.0 && !like_others ? setup.variance : own,
                           setup.all_vectors ? size : static_cast<std::size_t>(std::sqrt(static_cast<double>(size))));
}

UpperBound isotropic(Form form, std::string name, const ChannelSetup& setup, std::vector<Control> growth_faults = {},
                     std::vector<Control> exceedance_faults = {}, std::vector<Control> positive_controls = {}) {
    const std::string of_channel = setup.variance > 0.0          ? fmt::format(" of variance {}", setup.variance)
                                   : setup.noise == Noise::white ? ""
                                   : setup.first                 ? ", the channel of largest variance"
                                                                 : ", the channel of least variance";
    return {.form = form,
            .name = std::move(name),
            .statistic = fmt::format("max d zeta_k(j)^2 / log d over {} at a fixed j{}, {} noise",
                                     setup.all_vectors ? "all k" : "k up to sqrt(d)", of_channel, name_of(setup.noise)),
            .weights = [=](std::size_t size) { return isotropic_weights(setup, size); },
            .prepare = [=](const TrialPlace& place) { return isotropic_trial(place, setup); },
            .growth_faults = std::move(growth_faults),
            .exceedance_faults = std::move(exceedance_faults),
            .positive_controls = std::move(positive_controls),
            .against_law = setup.first};
}

std::vector<Criterion> criteria_of(const std::vector<UpperBound>& bounds) {
    std::vector<Criterion> all;
    for (const auto& bound : bounds)
        for (auto& criterion : criteria_of(bound)) all.push_back(std::move(criterion));
    return all;
}

}  // namespace

std::vector<Claim> vector_claims() {
    return {
        overlap("overlap.left", sim::MatrixSide::row),
        overlap("overlap.right", sim::MatrixSide::column),
        {.id = "delocalisation",
         .place = "paper, appendix, delocalization of non-outlier singular vectors",
         .statement = "singular vectors behind the outliers have squared overlaps of order 1/d with the signal",
         .plain = {"The directions behind the signals hold no signal.", "fraction of blocks above the bound",
                   "exceedance-coloured"},
         .criteria = criteria_of({delocalisation(Noise::white), delocalisation(Noise::coloured)})},
        {.id = "isotropic.edge",
         .place = "paper, appendix, isotropic delocalization",
         .statement = "noise vectors near the edge have squared coordinates of order 1/d",
         .plain = {"No channel dominates the strongest directions of the noise.", "fraction of blocks above the bound",
                   "exceedance-coloured-most"},
         .note =
             "the constant depends on the channel: under coloured noise the weight at the edge is .05 to 10. At the "
             "channel of largest variance the .99 quantile is 6.3, 8.0, 9.7, 11 at d = 32, 64, 128, 256, a slope of "
             ".3 up to d = 128, which would not hold as bounded; the law of the noise gives 5.6, 7.3, 9.1, 10.6 and a "
             "limit of 14, because a coordinate cannot exceed 1. So growth is judged against the law's there",
         .criteria = criteria_of(
             {isotropic(Form::printed, "white", {Noise::white}, {detached(1.0)}, {louder()}),
              isotropic(Form::printed, "coloured-most", {Noise::coloured, true}, {detached(1.0)}, {louder()}),
              isotropic(Form::printed, "coloured-least", {Noise::coloured}, {detached(std::exp(-3.0))}, {louder()})})},
        {.id = "isotropic.all",
         .place = "paper, proof of the corollary, equations for left and right vectors",
         .statement = "all singular vectors of the noise, not only those near the edge, have squared coordinates "
                      "of order 1/d",
         .plain = {"No channel dominates any direction of the noise.", "fraction of blocks above the bound",
                   "exceedance-all-k"},
         .corrected = "only those near the edge: a channel of small variance has a vector of its own at the bottom",
         .expected_verdict = PrintedVerdict::refuted,
         .refuted_as = ClaimKind::untrue,
         .note = "the lemma that the proof cites is about the edge; Assumption (iii) allows a few small variances",
         .criteria = criteria_of(
             {isotropic(Form::printed, "all-k", {Noise::white, false, 1e-3, true}, {}, {},
                        {{"even", "that channel like the others"}}),
              isotropic(Form::corrected, "near-edge", {Noise::white, false, 1e-3}, {detached(1e-3)}, {louder()})})}};
}

}  // namespace spiked::validation
