#include "estimators/spectral_estimator.hpp"

#include "estimators/eoptshrink.hpp"
#include "estimators/gavish_donoho.hpp"
#include "estimators/optshrink.hpp"
#include "estimators/screenot.hpp"
#include "estimators/spectral_family.hpp"
#include "estimators/tracy_widom_test.hpp"
#include "estimators/truncated_svd.hpp"
#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

const std::vector<SpectralFamily>& families() {
    static const std::vector<SpectralFamily> table = {
        eoptshrink_family(),           optshrink_family(), truncated_svd_family(),   gavish_donoho_hard_family(),
        gavish_donoho_shrink_family(), screenot_family(),  tracy_widom_test_family()};
    return table;
}

}  // namespace

const std::vector<EstimatorEntry>& spectral_estimators() {
    static const std::vector<EstimatorEntry> entries = [] {
        std::vector<EstimatorEntry> all;
        for (const auto& family : families()) all.push_back(family.entry);
        return all;
    }();
    return entries;
}

SpectralEstimator spectral_estimator(std::string_view name, theory::Loss loss, const KnownLaw& known) {
    const ParsedName parsed = parse_name(name);
    std::vector<std::string> names;
    for (const auto& family : families()) {
        if (family.entry.name == parsed.name) return family.make(parsed, loss, known);
        names.push_back(family.entry.name);
    }
    throw usage_error("unknown spectral estimator \"{}\"{}", parsed.name, suggestion(parsed.name, names));
}

}  // namespace spiked::estimators
