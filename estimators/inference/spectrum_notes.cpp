#include "estimators/inference/spectrum_notes.hpp"

#include <fmt/format.h>

#include "estimators/pca/seen_components.hpp"
#include "estimators/ranks/bulk_gap.hpp"

namespace spiked::estimators {

std::vector<std::string> spectrum_notes(std::span<const double> singular_values, double share_seen) {
    std::vector<std::string> notes;
    if (const auto gap = bulk_gap(singular_values))
        notes.push_back(fmt::format(
            "a gap in the bulk: singular values {} and {} are {:.4g} and {:.4g}, {:.3g} times the spacing beside them "
            "(noise with one bulk leaves such a gap in {:g} % of matrices, nominal). The noise may have several "
            "components, or the signal {} components of similar strengths. eoptshrink, optshrink, svd, screenot, "
            "gd-hard, gd-shrink and tw-test assume one bulk: they look for signals above its top edge, and may be "
            "wrong about those in the gap or below it, which they take for noise",
            gap->above, gap->above + 1, gap->upper, gap->lower, gap->spacings, 100.0 * bulk_gap_level, gap->above));
    if (share_seen < share_trusted)
        notes.push_back(
            fmt::format("with only {:.3g} % of the entries seen, intervals are too short, and tw-test and gd-shrink "
                        "count components of noise, eoptshrink and tw-test:null=signflip fewer",
                        100.0 * share_seen));
    return notes;
}

}  // namespace spiked::estimators
