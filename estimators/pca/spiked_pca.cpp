#include "estimators/pca/spiked_pca.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/runtime/error.hpp"
#include "estimators/spectral/noise_level.hpp"
#include "estimators/spectral/tracy_widom_rank.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "theory/laws/spiked_covariance.hpp"

namespace spiked::estimators {
namespace {

// Variances are in units of the largest eigenvalue of the sample covariance.

double variance_by_median(const RelativeSpectrum& spectrum, std::size_t components) {
    const Shape rest{spectrum.shape.rows - components, spectrum.shape.columns - components};
    const double deviation =
        white_noise_level(std::span(spectrum.values).subspan(components), rest, NoiseLevelRule::median);
    return deviation * deviation * static_cast<double>(spectrum.shape.rows);
}

double variance_by_mean(const RelativeSpectrum& spectrum, std::size_t components) {
    const std::span eigenvalues(spectrum.eigenvalues);
    const std::size_t features = spectrum.shape.columns - components;
    const auto rest = eigenvalues.subspan(components);
    const double unexplained = std::accumulate(rest.begin(), rest.end(), 0.0);
    if (unexplained == 0.0) return 0.0;
    double variance = unexplained / static_cast<double>(features);
    for (int round = 0; round < 200; ++round) {
        const theory::SpikedCovariance law(AspectRatio::of(spectrum.shape.rows, features), variance);
        double sum = unexplained;
        for (const double sample : eigenvalues.first(components))
            sum += sample - law.population_eigenvalue({sample}).value_or(law.detection_threshold()).value;
        const double next = sum / static_cast<double>(features);
        if (std::abs(next - variance) <= 1e-14 * variance) return next;
        variance = next;
    }
    return variance;
}

struct NoiseAndRank {
    double variance = 0.0;
    std::size_t components = 0;
};

NoiseAndRank noise_and_rank(const RelativeSpectrum& spectrum, const PcaOptions& options) {
    const double samples = static_cast<double>(spectrum.shape.rows);
    NoiseAndRank found;
    while (true) {
        if (options.noise_level)
            found.variance = *options.noise_level / spectrum.unit * samples / spectrum.unit;
        else if (options.rule == VarianceRule::mean)
            found.variance = variance_by_mean(spectrum, found.components);
        else
            found.variance = variance_by_median(spectrum, found.components);
        if (found.variance == 0.0) return {0.0, spectrum.above_rounding};
        const double deviation = std::sqrt(found.variance / samples) * spectrum.unit;
        const TracyWidomTest test({.level = options.level, .noise_level = deviation});
        const std::size_t rank =
            std::min(test(spectrum.observed, spectrum.shape).rank, options.most_components.value_or(spectrum.size()));
        if (rank <= found.components) return found;
        found.components = options.noise_level ? rank : found.components + 1;
        if (found.components == spectrum.size()) return found;
    }
}

/// Keeps every component as it is.
void keep_components(SpikedPca& result) {
    for (std::size_t i = 0; i < result.components; ++i) {
        result.debiased.push_back(result.eigenvalues[i]);
        result.shrunk.push_back(result.eigenvalues[i]);
        result.cosines.push_back(1.0);
    }
    result.debiased_errors.assign(result.components, 0.0);
    result.cosine_errors.assign(result.components, 0.0);
}

double shrunk_by(const PcaOptions& options, double sample, Eigenvalue population, Overlap squared_cosine,
                 double noise_level) {
    if (options.shrinker == EigenvalueShrinker::sample) return sample;
    if (options.shrinker == EigenvalueShrinker::debiased) return population.value;
    const CovarianceLoss& loss = options.loss != nullptr ? *options.loss : covariance_losses()[0];
    return shrunk_eigenvalue(loss, population, squared_cosine, noise_level);
}

/// Appends what the model says of component `i`; numbers are relative to `unit`, the largest eigenvalue.
void append_component(SpikedPca& result, const theory::SpikedCovariance& law, double sample, double noise_level,
                      double unit, double root_samples, const PcaOptions& options) {
    const auto found = law.population_eigenvalue({sample});
    const Eigenvalue population = found ? *found : law.detection_threshold();
    const Overlap squared = found ? law.squared_cosine(population) : Overlap{0.0};
    const auto spread = found ? law.spread(population) : std::nullopt;
    const double cosine = std::sqrt(squared.value);
    result.debiased.push_back(population.value * unit);
    result.debiased_errors.push_back(spread ? spread->population_eigenvalue / root_samples * unit : 0.0);
    result.cosines.push_back(cosine);
    result.cosine_errors.push_back(
        spread && cosine > 0.0 ? std::min(1.0, spread->estimated_squared_cosine / root_samples / (2.0 * cosine)) : 0.0);
    result.shrunk.push_back(shrunk_by(options, sample, population, squared, noise_level) * unit);
}

/// Adds to the errors of cosines what components take from each other: in a sample the vector of component i is rotated
/// towards that of component j by an angle of mean square V_ij, which lowers its cosine by half the sum of the squares.
/// The vectors that solve b_i / l_i = sum_j K_ij b_j, where K(z) is the quadratic form of the noise's resolvent in the
/// scores and b_i = sqrt(l_i) times the coordinate on vector i, turn by sqrt(l_i / l_j) K_ij / (1 / l_j - 1 / l_i), and
/// K_ij has the variance -m'(z_i) / n = 1 / (l_i^2 f_i n): V_ij = l_i l_j / (n f_i (l_i - l_j)^2).
void add_mixing(SpikedPca& result, double gamma, double samples) {
    for (std::size_t i = 0; i < result.components; ++i) {
        if (!(result.cosines[i] > 0.0)) continue;
        const double own = result.debiased[i] / result.noise_level;
        const double cleared = 1.0 - gamma / ((own - 1.0) * (own - 1.0));
        double sum = 0.0, squares = 0.0;
        for (std::size_t j = 0; j < result.components; ++j) {
            const double other = result.debiased[j] / result.noise_level;
            if (j == i) continue;
            const double squared_angle = own * other / (samples * cleared * (own - other) * (own - other));
            sum += squared_angle;
            squares += squared_angle * squared_angle;
        }
        // The mean square of half of sum V_ij x_j^2, x_j standard normal.
        const double mixing = result.cosines[i] * 0.5 * std::sqrt(sum * sum + 2.0 * squares);
        if (sum > 0.0) result.cosine_errors[i] = std::fmin(1.0, std::hypot(result.cosine_errors[i], mixing));
    }
}

/// Notes the components that are too near to each other for what is said of them one by one.
void note_close_components(SpikedPca& result) {
    std::vector<std::size_t> near;
    for (std::size_t i = 0; i < result.components; ++i)
        if (theory::close_neighbour(result.debiased, result.debiased_errors, i, separation_of_components))
            near.push_back(i + 1);
    if (near.empty()) return;
    result.note += fmt::format(
        "{}components {} have a neighbour nearer than {:g} standard errors of the eigenvalue: their vectors mix, so "
        "that the cosine of each is too high and its error too small; only together they span what the population's do",
        result.note.empty() ? "" : "; ", fmt::join(near, ", "), separation_of_components);
}

void require_usable(Shape shape, const PcaOptions& options) {
    if (shape.rows < 2 || shape.columns < 2)
        throw input_error(
            "{} samples of {} features have no spectrum to judge (2 of each are needed, and centring takes one "
            "sample): give more",
            shape.rows, shape.columns);
    if (options.noise_level && !(*options.noise_level > 0.0 && std::isfinite(*options.noise_level)))
        throw usage_error("noise level {} is not usable (a variance, positive and finite): leave it out to estimate it",
                          *options.noise_level);
}

}  // namespace

SpikedPca spiked_pca(std::span<const double> singular_values, Shape shape, const PcaOptions& options) {
    require_usable(shape, options);
    const RelativeSpectrum spectrum(singular_values, shape);
    SpikedPca result;
    result.eigenvalues.assign(shape.short_side(), 0.0);
    if (spectrum.unit == 0.0) {
        result.note = "the data are constant or zero: there is nothing to analyse";
        return result;
    }
    const double samples = static_cast<double>(shape.rows);
    const double unit = spectrum.unit * spectrum.unit / samples;
    if (!std::isnormal(unit))
        throw input_error(
            "the largest singular value is {:.3g} (its square is no number of double precision): divide the data by "
            "their largest entry",
            spectrum.unit);
    for (std::size_t i = 0; i < spectrum.size(); ++i) result.eigenvalues[i] = spectrum.eigenvalues[i] * unit;
    const NoiseAndRank found = noise_and_rank(spectrum, options);
    result.components = found.components;
    if (found.variance == 0.0) {
        result.note = "at least half of the eigenvalues are 0: low rank, no noise level to estimate";
        keep_components(result);
        return result;
    }
    result.noise_level = found.variance * unit;
    const theory::SpikedCovariance law(AspectRatio::of(shape.rows, shape.columns), found.variance);
    for (std::size_t i = 0; i < result.components; ++i)
        append_component(result, law, spectrum.eigenvalues[i], found.variance, unit, std::sqrt(samples), options);
    add_mixing(result, static_cast<double>(shape.columns) / samples, samples);
    note_close_components(result);
    return result;
}

}  // namespace spiked::estimators
