#pragma once
#include <armadillo>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "estimators/inference/spike_intervals.hpp"

namespace spiked::app {

/// The intervals of one estimate and how they were made.
struct Uncertainty {
    estimators::IntervalMethod method = estimators::IntervalMethod::none;
    double confidence = 0.0;
    std::optional<std::vector<estimators::SpikeIntervals>> components;  ///< none: they were not asked for
    std::optional<double> next_p_value;
    std::optional<estimators::NoiseTails> tails;  ///< of the entries behind the components
};

/// The intervals as `spiked spectrum --json` has them; null where they were not asked for.
[[nodiscard]] Json intervals_json(const Uncertainty& of);
/// One line for each component.
[[nodiscard]] std::string intervals_text(const Uncertainty& of);

}  // namespace spiked::app
