#include "estimators/spectral/tracy_widom_rank.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/memo.hpp"
#include "estimators/spectral/noise_level.hpp"
#include "estimators/spectral/spectral_family.hpp"
#include "estimators/spectral/white_shrinkage.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/separable_law.hpp"
#include "theory/laws/tracy_widom.hpp"

namespace spiked::estimators {
namespace {

/// Where the distribution of the largest value without a signal comes from.
enum class NullLaw { tracy_widom, kurtosis, sign_flips };

}  // namespace
}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::NullLaw> {
    static constexpr EnumName<spiked::estimators::NullLaw> table[] = {
        {spiked::estimators::NullLaw::tracy_widom, "tw"},
        {spiked::estimators::NullLaw::kurtosis, "kurtosis"},
        {spiked::estimators::NullLaw::sign_flips, "signflip"}};
};

namespace spiked::estimators {
namespace {

double per_columns(Shape shape) { return std::pow(static_cast<double>(shape.columns), -2.0 / 3.0); }

/// The threshold on an eigenvalue for noise entries of variance 1/d.
double white_cutoff(Shape shape, double quantile) {
    const double beta = AspectRatio::of(shape.rows, shape.columns).value();
    return theory::white::bulk_edge(beta) + quantile * per_columns(shape) / theory::white::tracy_widom_scale(beta);
}

/// The quantile is cached because solving for it takes milliseconds and studies use the same few levels for every cell.
double quantile_at(double level) {
    static Memo<double, double> quantiles;
    return quantiles.of(level, [&] { return theory::tracy_widom_upper_quantile(level); });
}

/// The shift of the edge of noise entries of variance 1/d by the kurtosis of the entries behind `rank` components.
double kurtosis_shift(AnalysedBlock& block, std::size_t rank, Shape rest) {
    const std::span<const double> values = block.singular_values();
    arma::mat residual = block.residual(values.first(rank)) / values.front();
    if (block.kept_rows().n_elem < residual.n_rows || block.kept_columns().n_elem < residual.n_cols)
        residual = residual.submat(block.kept_rows(), block.kept_columns());
    const double root = std::sqrt(AspectRatio::of(rest.rows, rest.columns).value());
    return excess_kurtosis(residual) * (1.0 + root) * (1.0 + root) / (root * static_cast<double>(rest.columns));
}

Shrinkage white(const RelativeSpectrum& spectrum, const TracyWidomOptions& options, double quantile,
                const ParallelAnalysis* flips, AnalysedBlock* block) {
    std::size_t rank = 0;
    double level = 0.0;
    while (true) {
        const Shape rest{spectrum.shape.rows - rank, spectrum.shape.columns - rank};
        level = options.noise_level
                    ? *options.noise_level / spectrum.unit
                    : white_noise_level(std::span(spectrum.values).subspan(rank), rest, NoiseLevelRule::median);
        if (level == 0.0)
            return unshrunk(spectrum, spectrum.above_rounding,
                            "more than half the singular values are 0: low rank, no noise level to estimate");
        const double shift = options.kurtosis ? kurtosis_shift(*block, rank, rest) : 0.0;
        const double cutoff =
            (white_cutoff(rest, quantile) + shift) * static_cast<double>(rest.columns) * level * level;
        if (!(flips != nullptr ? flips->significant(rank) : spectrum.eigenvalues[rank] > cutoff)) break;
        if (++rank == spectrum.size()) break;
    }
    Shrinkage found = white_shrinkage(spectrum, rank, level, options.loss);
    found.tracy_widom_null = flips == nullptr && !options.kurtosis;
    return found;
}

Shrinkage under_law(const RelativeSpectrum& spectrum, const TracyWidomOptions& options, double quantile,
                    const ParallelAnalysis* flips) {
    const Shape shape = spectrum.shape;
    const theory::Spectrum identity = theory::identity_spectrum();
    const theory::SeparableLaw law(options.law.row.value_or(identity), options.law.column.value_or(identity),
                                   AspectRatio::of(shape.rows, shape.columns));
    const double columns = static_cast<double>(shape.columns);
    // The unit of the law's singular values, relative to the largest singular value of the block.
    const double standard = (options.noise_level ? *options.noise_level * std::sqrt(columns) : 1.0) / spectrum.unit;
    const double edge = law.bulk_edge().value;
    const double cutoff = edge + quantile * per_columns(shape) / law.tracy_widom_scale();
    Shrinkage result;
    result.bulk_edge = spectrum.eigenvalue(edge * standard * standard);
    while (result.rank < spectrum.size()) {
        const double observed = spectrum.values[result.rank] / standard;
        if (!(flips != nullptr ? flips->significant(result.rank) : observed * observed > cutoff)) break;
        const double outlier = observed * observed;
        const bool above = outlier > edge;
        const auto spike = law.spike(above ? law.strength_of({outlier}) : law.detection_threshold());
        append(result,
               {spike.strength.value * standard * spectrum.unit, spike.overlap_left.value, spike.overlap_right.value,
                std::clamp(spike.shrunk(options.loss).value * standard * spectrum.unit, 0.0,
                           spectrum.observed[result.rank])});
        ++result.rank;
    }
    return result;
}

}  // namespace

TracyWidomTest::TracyWidomTest(TracyWidomOptions options) : options_(std::move(options)) {
    if (const auto draws = options_.sign_flips;
        draws && (*draws < ParallelAnalysis::least_draws(options_.level) || *draws > ParallelAnalysis::most_draws))
        throw usage_error("tw-test: {} draws of signs are not possible at level {}: give {} to {}", *draws,
                          options_.level, ParallelAnalysis::least_draws(options_.level), ParallelAnalysis::most_draws);
    if (options_.kurtosis && !options_.law.empty())
        throw usage_error(
            "tw-test:null=kurtosis needs white noise (the effect of the kurtosis on a known law is not known): write "
            "whiten+tw-test:null=kurtosis, or leave null= out");
    quantile_ = quantile_at(options_.level);
}

double excess_kurtosis(const arma::mat& entries) {
    const arma::mat squares = arma::square(entries);
    const double mean_square = arma::accu(squares) / static_cast<double>(squares.n_elem);
    if (!(mean_square > 0.0)) return 0.0;
    return arma::accu(arma::square(squares / mean_square)) / static_cast<double>(squares.n_elem) - 3.0;
}

Shrinkage TracyWidomTest::judge(const RelativeSpectrum& spectrum, const ParallelAnalysis* flips,
                                AnalysedBlock* block) const {
    if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
    return options_.law.empty() ? white(spectrum, options_, quantile_, flips, block)
                                : under_law(spectrum, options_, quantile_, flips);
}

Shrinkage TracyWidomTest::operator()(std::span<const double> singular_values, Shape shape) const {
    if (options_.sign_flips || options_.kurtosis)
        throw usage_error("tw-test:null={} needs the matrix (only its singular values are known here): leave null= out",
                          enum_name(options_.sign_flips ? NullLaw::sign_flips : NullLaw::kurtosis));
    return judge(RelativeSpectrum(singular_values, shape), nullptr, nullptr);
}

Shrinkage TracyWidomTest::operator()(AnalysedBlock& block) const {
    const RelativeSpectrum spectrum(block.singular_values(), block.shape());
    if (!options_.sign_flips) return judge(spectrum, nullptr, &block);
    const ParallelAnalysis flips(block, options_.level, *options_.sign_flips);
    return judge(spectrum, &flips, &block);
}

SpectralFamily tracy_widom_test_family() {
    return {
        {{"tw-test",
          "rank by sequential Tracy-Widom tests: white noise, or the law of --row-spectrum and --col-spectrum (law = "
          "\"known\" in a study)",
          {{"level", number("P", {.above = 0.0, .below = 1.0}),
            "false-alarm rate of each test; with null=tw it holds for Gaussian and lighter entries only (heavy tails: "
            "up to .7 at .01)",
            fmt::format("{}", TracyWidomOptions{}.level)},
           {"null", one_of<NullLaw>(),
            "null law: tw is Tracy-Widom; kurtosis shifts its edge by the kurtosis of the entries (white noise with a "
            "fourth moment); signflip takes blocks with random signs, for any symmetric independent entries. To keep "
            "its level, kurtosis needs sigma=: with the noise level from the median, false alarms at .01 are .01 to .4",
            std::string(enum_name(NullLaw::tracy_widom))},
           {"draws", whole("N", 1, ParallelAnalysis::most_draws), "with null=signflip: number of such blocks",
            "1/level - 1"},
           {"sigma", number("S", {.above = 0.0}),
            "standard deviation of the noise entries; default: from the median, 1/sqrt(d) under a given law"}},
          "Johnstone 2001; Kritchman & Nadler 2009; Hwang, Lee & Yang 2019; Hong, Sheng & Dobriban 2020",
          {"tracy-widom"}},
         true},
        [](const NameOptions& named, theory::Loss loss, const KnownLaw& known) -> SpectralEstimator {
            TracyWidomOptions options{.loss = loss,
                                      .level = named.number_or_default("level"),
                                      .noise_level = named.number("sigma"),
                                      .law = known};
            const auto draws = named.whole("draws");
            const NullLaw null = named.choice_or_default<NullLaw>("null");
            options.kurtosis = null == NullLaw::kurtosis;
            if (null == NullLaw::sign_flips)
                options.sign_flips = draws.value_or(ParallelAnalysis::least_draws(options.level));
            else if (draws)
                throw usage_error("\"{}\": draws= has no effect without null=signflip: leave it out", named.text());
            const TracyWidomTest test(options);
            SpectralEstimator estimator{named.text(), test};
            if (options.sign_flips || options.kurtosis) estimator.estimate_block = test;
            estimator.needs_all_values = estimator.estimate_block || (!options.noise_level && options.law.empty());
            return estimator;
        }};
}

}  // namespace spiked::estimators
