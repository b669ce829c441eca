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

static const Registry<SpectralFamily>& families() {
    static const Registry<SpectralFamily> table(
        "spectral estimator",
        {eoptshrink_family(), optshrink_family(), truncated_svd_family(), gavish_donoho_hard_family(),
         gavish_donoho_shrink_family(), screenot_family(), tracy_widom_test_family()});
    return table;
}

const std::vector<EstimatorEntry>& spectral_estimators() {
    static const auto entries = families().entries<EstimatorEntry>();
    return entries;
}

SpectralSpec spectral_spec(std::string_view name) {
    const ParsedName parsed = parse_name(name);
    const SpectralFamily& family = families().named(parsed.name);
    return {&family, NameOptions(parsed, family.entry.options)};
}

SpectralEstimator spectral_estimator(std::string_view name, theory::Loss loss, const KnownLaw& known) {
    const SpectralSpec spec = spectral_spec(name);
    SpectralEstimator estimator = spec.family->make(spec.named, loss, known);
    estimator.keeps_values = spec.family->entry.keeps_values;
    return estimator;
}

}  // namespace spiked::estimators
