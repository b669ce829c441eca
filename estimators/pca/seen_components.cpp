#include "estimators/pca/seen_components.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "estimators/ranks/parallel_analysis.hpp"

namespace spiked::estimators {
namespace {

/// The sum of l_i - s^2 over the features.
double component_variance(const SpikedPca& weighted, Shape shape) {
    double sum = 0.0;
    for (const double eigenvalue : weighted.debiased) sum += eigenvalue - weighted.noise_level;
    return sum / static_cast<double>(shape.columns);
}

}  // namespace

SpikedPca weighted_components(std::span<const double> singular_values, AnalysedBlock& weighted, Shape shape,
                              const PcaOptions& options, double share_seen) {
    if (share_seen == 1.0) return spiked_pca(singular_values, shape, options);
    constexpr double least_level = 0.001;
    const double level = std::max(options.level, least_level);
    PcaOptions limited = options;
    limited.most_components = ParallelAnalysis(weighted, level, ParallelAnalysis::least_draws(level)).rank();
    if (!options.noise_level) return spiked_pca(singular_values, shape, limited);
    SpikedPca found;
    double of_components = 0.0;
    constexpr int rounds = 3;  // each changes the level by a power more of components over features
    for (int round = 0; round < rounds; ++round) {
        limited.noise_level = (*options.noise_level + (1.0 - share_seen) * of_components) / share_seen;
        found = spiked_pca(singular_values, shape, limited);
        of_components = component_variance(found, shape);
    }
    return found;
}

void correct_for_missing(SpikedPca& found, Shape shape, const PcaOptions& options, double share_seen) {
    if (share_seen == 1.0 || found.noise_level == 0.0) return;
    const double weighted = found.noise_level;
    const double estimated = share_seen * weighted - (1.0 - share_seen) * component_variance(found, shape);
    const double whole = options.noise_level.value_or(std::max(0.0, estimated));
    found.weighted_noise_level = weighted;
    found.noise_level = whole;
    const CovarianceLoss& loss = options.loss != nullptr ? *options.loss : covariance_losses()[0];
    for (std::size_t i = 0; i < found.components; ++i) {
        found.debiased[i] += whole - weighted;
        if (options.shrinker == EigenvalueShrinker::sample)
            found.shrunk[i] += whole - weighted;
        else if (options.shrinker == EigenvalueShrinker::debiased || whole == 0.0)
            found.shrunk[i] = found.debiased[i];
        else
            found.shrunk[i] =
                shrunk_eigenvalue(loss, {found.debiased[i]}, {found.cosines[i] * found.cosines[i]}, whole);
    }
    const auto note = [&](const std::string& text) { found.note += (found.note.empty() ? "" : "; ") + text; };
    if (whole == 0.0)
        note(
            "what the missing entries make of the components explains all noise: low rank, no noise level to estimate");
    if (share_seen < share_trusted && found.components > 0)
        note(
            fmt::format("with only {:.3g} % of the entries seen, cosines are too high on average and their errors too "
                        "small",
                        100.0 * share_seen));
}

}  // namespace spiked::estimators
