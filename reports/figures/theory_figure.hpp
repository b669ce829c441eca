#pragma once
#include <span>

#include "reports/figures/figures.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::reports {

/// The phase transition under one law: the observed singular value (the root of the outlier), the squared overlaps and
/// the three shrunk values against the signal strength, with the bulk edge and the detection threshold. The `marked`
/// strengths are points on the curves. The strength axis runs from 0 to 3.5 thresholds, or past the largest marked one.
/// Where spikes can have outliers in gaps of the bulk, the components of the bulk are shaded, the outliers in the gaps
/// are further curves, and a fourth panel shows the density of the noise with the outliers of the marked strengths.
///
/// The rows of the figure are the marked strengths in the order given, each with its highest outlier; its csv holds the
/// curves and all marked outliers. Draw the result with write_picture or draw. Throws the errors of law.spike. Cost:
/// about 300 queries of the law, and as many for each gap with outliers.
[[nodiscard]] Figure phase_transition(const theory::SeparableLaw& law, std::span<const SignalStrength> marked);

}  // namespace spiked::reports
