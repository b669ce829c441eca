#pragma once
#include <span>

#include "reports/figures/figures.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::reports {

/// The phase transition under one law, against strength: the observed singular value (the root of the outlier), the
/// squared overlaps and the three shrunk values, with the bulk edge and the detection threshold. `marked` strengths
/// are points on the curves. The strength axis runs from 0 to 3.5 thresholds, or past the largest marked one.
///
/// `rows` are the marked strengths in the order given, `csv` these and the curves. Nothing is drawn yet: write_picture
/// or draw does. Throws what law.spike throws. Cost: about 300 queries of the law.
[[nodiscard]] Figure phase_transition(const theory::SeparableLaw& law, std::span<const SignalStrength> marked);

}  // namespace spiked::reports
