#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "theory/laws/separable_law.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "validation/store/experiment.hpp"

namespace spiked::validation {

/// The point of a study at which a claim is checked: law and size of the cell, spike, bits of the codec.
struct ClaimPoint {
    const theory::SeparableLaw* law = nullptr;
    std::size_t rows = 0;
    std::size_t columns = 0;
    SignalStrength strength;       ///< of spike k
    unsigned bits = 0;             ///< of the codec
    bool symmetric = false;        ///< of the blocks
    double excess_kurtosis = 0.0;  ///< of the entries; may be infinite
};

/// A claim about the spikes that are seen in a gap of the noise only.
struct GapForm {
    std::string metric = {};  ///< empty: the claim says nothing about them
    double (*predicted)(const theory::SpikePrediction&) = nullptr;
    double (*with_defect)(const theory::SupportGaps&, const theory::GapOutlier&) = nullptr;
};

/// A claim as the check of a study: the metric, its predicted value, and a negative control with one planted defect,
/// which the check must reject.
struct StudyForm {
    std::string control;  ///< describes the planted defect
    std::string metric;
    std::string kind;   ///< kind of the method that has the metric: sample | codec
    std::string codec;  ///< base name of the codec; empty for other kinds
    bool per_spike = false;
    /// Whether the claim makes a prediction at this point.
    bool (*applies)(const ClaimPoint&);
    double (*predicted)(const ClaimPoint&);
    double (*with_defect)(const ClaimPoint&);
    /// The metric of a cluster of close spikes, which is predicted to be the mean of their predictions; empty: a claim
    /// about detectable spikes says nothing about clusters.
    std::string of_clusters = {};
    /// A caveat where the law does not know something at this point, `claim` left empty; null: it knows all of it.
    std::optional<Caveat> (*caveat)(const ClaimPoint&) = nullptr;
    GapForm in_gaps = {};
};

/// The claims that a study can check in its own cells, by id, in the order of the table of claims. The checks of a
/// store have the same order.
[[nodiscard]] const std::vector<std::pair<std::string, StudyForm>>& study_forms();

}  // namespace spiked::validation
