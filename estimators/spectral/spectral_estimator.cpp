#include "estimators/spectral/spectral_estimator.hpp"

#include "estimators/spectral/spectral_family.hpp"

namespace spiked::estimators {

// Each family is defined in its own source file without a header.
SpectralFamily eoptshrink_family();
SpectralFamily optshrink_family();
SpectralFamily truncated_svd_family();
SpectralFamily gavish_donoho_hard_family();
SpectralFamily gavish_donoho_shrink_family();
SpectralFamily screenot_family();
SpectralFamily tracy_widom_test_family();

static const Registry<SpectralFamily>& spectral_families() {
    static const Registry<SpectralFamily> table(
        "spectral estimator",
        {eoptshrink_family(), optshrink_family(), truncated_svd_family(), gavish_donoho_hard_family(),
         gavish_donoho_shrink_family(), screenot_family(), tracy_widom_test_family()});
    return table;
}

const std::vector<EstimatorEntry>& spectral_estimators() {
    static const auto entries = spectral_families().entries<EstimatorEntry>();
    return entries;
}

SpectralSpec spectral_spec(std::string_view name) {
    const ParsedName parsed = parse_name(name);
    const SpectralFamily& family = spectral_families().named(parsed.name);
    return {&family, NameOptions(parsed, family.entry.options)};
}

const EstimatorEntry& SpectralSpec::entry() const { return family->entry; }

SpectralEstimator SpectralSpec::make(theory::Loss loss, const KnownLaw& known) const {
    SpectralEstimator estimator = family->make(named, loss, known);
    estimator.keeps_values = entry().keeps_values;
    return estimator;
}

std::function<Shrinkage(AnalysedBlock&)> ranked_by_block(BlockRankRule rule, RankedEstimate at_rank) {
    return [rule = std::move(rule), at_rank = std::move(at_rank)](AnalysedBlock& block) {
        const std::size_t rank = rule(block);
        return at_rank(block.singular_values(), block.shape(), rank);
    };
}

SpectralEstimator spectral_estimator(std::string_view name, theory::Loss loss, const KnownLaw& known) {
    return spectral_spec(name).make(loss, known);
}

}  // namespace spiked::estimators
