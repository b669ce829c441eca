#pragma once
#include <string>
#include <vector>

#include "theory/laws/separable_law.hpp"
#include "validation/engine/experiment.hpp"

namespace spiked::validation {

/// Adds the limits of what is measured on the cell's blocks: bulk edge, and for each component with one of these
/// strengths the outlier, overlaps, strength and shrunk value. Detectable components of equal strength have none.
void add_limits(ExperimentCell& cell, const theory::SeparableLaw& law, const std::vector<SignalStrength>& strengths);

/// Adds what the claims of study_forms predict for the methods of the experiment. `codecs`: the names of its last
/// methods.
void add_predictions(ExperimentCell& cell, const Experiment& experiment, const std::vector<std::string>& codecs,
                     const theory::SeparableLaw& law, const std::vector<SignalStrength>& strengths);

}  // namespace spiked::validation
