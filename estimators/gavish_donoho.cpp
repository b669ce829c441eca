#include "estimators/gavish_donoho.hpp"

#include <cmath>

#include "estimators/relative_spectrum.hpp"
#include "estimators/white_shrinkage.hpp"
#include "theory/base/error.hpp"
#include "theory/marchenko_pastur.hpp"

namespace spiked::estimators {
namespace {

/// In units of the largest singular value.
double level_of(const RelativeSpectrum& spectrum, const GavishDonohoOptions& options) {
    if (options.noise_level) return *options.noise_level / spectrum.unit;
    return white_noise_level(spectrum.values, spectrum.shape, options.rule);
}

template <class Method>
Shrinkage with_level(std::span<const double> singular_values, Shape shape, const GavishDonohoOptions& options,
                     Method method) {
    const RelativeSpectrum spectrum(singular_values, shape);
    if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
    const double level = level_of(spectrum, options);
    if (level == 0.0)
        return spectrum.unshrunk(spectrum.above_rounding,
                                 "more than half the singular values are 0: of low rank, no noise level to see");
    return method(spectrum, level);
}

GavishDonohoOptions options_of(const ParsedName& parsed, theory::Loss loss) {
    const NameOptions typed(parsed, {"sigma"}, {"quantile"});
    GavishDonohoOptions options{.loss = loss, .noise_level = typed.number("sigma", true)};
    if (typed.has_word("quantile")) {
        if (options.noise_level)
            throw usage_error("\"{}\": a known sigma needs no quantile: leave one out", parsed.text);
        options.rule = NoiseLevelRule::quantile;
    }
    return options;
}

const std::vector<std::string> option_lines = {
    "sigma=S (standard deviation of the noise entries; default: from the median singular value)",
    ":quantile (level from the values below the edge alone: robust to many signals)"};

}  // namespace

double hard_threshold_coefficient(double aspect) {
    const double b = aspect;
    return std::sqrt(2.0 * (b + 1.0) + 8.0 * b / (b + 1.0 + std::sqrt(b * b + 14.0 * b + 1.0)));
}

double median_threshold_coefficient(double aspect) {
    return hard_threshold_coefficient(aspect) / std::sqrt(theory::MarchenkoPastur(AspectRatio(aspect)).median().value);
}

Shrinkage gavish_donoho_hard(std::span<const double> singular_values, Shape shape, const GavishDonohoOptions& options) {
    return with_level(singular_values, shape, options, [&](const RelativeSpectrum& spectrum, double level) {
        const double long_side = static_cast<double>(shape.long_side());
        const double threshold = hard_threshold_coefficient(static_cast<double>(shape.short_side()) / long_side) *
                                 std::sqrt(long_side) * level;
        std::size_t rank = 0;
        while (rank < spectrum.size() && spectrum.values[rank] > threshold) ++rank;
        Shrinkage result = white_shrinkage(spectrum, rank, level, options.loss);
        result.shrunk = spectrum.truncated(rank).shrunk;
        return result;
    });
}

Shrinkage gavish_donoho_shrink(std::span<const double> singular_values, Shape shape,
                               const GavishDonohoOptions& options) {
    return with_level(singular_values, shape, options, [&](const RelativeSpectrum& spectrum, double level) {
        const double edge =
            level * (std::sqrt(static_cast<double>(shape.rows)) + std::sqrt(static_cast<double>(shape.columns)));
        std::size_t rank = 0;
        while (rank < spectrum.size() && spectrum.values[rank] > edge) ++rank;
        return white_shrinkage(spectrum, rank, level, options.loss);
    });
}

SpectralFamily gavish_donoho_hard_family() {
    return {{"gd-hard", "optimal hard threshold under white noise, values kept as they are", option_lines,
             "Gavish & Donoho 2014"},
            [](const ParsedName& parsed, theory::Loss loss, const KnownLaw&) -> SpectralEstimator {
                return {parsed.text, [options = options_of(parsed, loss)](std::span<const double> s, Shape shape) {
                            return gavish_donoho_hard(s, shape, options);
                        }};
            }};
}

SpectralFamily gavish_donoho_shrink_family() {
    return {{"gd-shrink", "optimal shrinkage under white noise for any of the three losses", option_lines,
             "Gavish & Donoho 2017; Leeb 2022 for the operator norm"},
            [](const ParsedName& parsed, theory::Loss loss, const KnownLaw&) -> SpectralEstimator {
                return {parsed.text, [options = options_of(parsed, loss)](std::span<const double> s, Shape shape) {
                            return gavish_donoho_shrink(s, shape, options);
                        }};
            }};
}

}  // namespace spiked::estimators
