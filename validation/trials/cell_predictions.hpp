#pragma once
#include <string>
#include <vector>

#include "theory/laws/profile_law.hpp"
#include "theory/laws/separable_law.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "validation/store/experiment.hpp"

namespace spiked::validation {

/// The spikes of a cell, in decreasing order of strength, and their clusters.
struct CellSpikes {
    const std::vector<SignalStrength>& strengths;
    const std::vector<theory::SpikeCluster>& clusters;
};

/// Adds the limits of what is measured on the cell's blocks: bulk edge, and for each spike outlier, overlaps, strength
/// and shrunk value. Detectable spikes that are not alone in their cluster have none; a cluster of detectable spikes
/// has those of its subspaces and the mean of its outliers.
void add_limits(ExperimentCell& cell, const theory::SeparableLaw& law, const CellSpikes& spikes);
/// The same for noise with a variance profile and spikes that are spread evenly.
void add_limits(ExperimentCell& cell, const theory::ProfileLaw& law, const CellSpikes& spikes);

/// The clusters of such spikes. The fluctuations that decide are those of white noise at as many thresholds, because
/// those of the profile are not known; the law of close spikes is about their order of magnitude.
[[nodiscard]] std::vector<theory::SpikeCluster> clusters_in_profile(const theory::ProfileLaw& law,
                                                                    const std::vector<SignalStrength>& strengths,
                                                                    std::size_t rows, std::size_t columns);

/// Adds what the claims of study_forms predict for the methods of the experiment. `codecs`: the names of its last
/// methods. A claim about detectable spikes is tested on a cluster by its metric of clusters. Nothing is predicted
/// about a cluster that holds a spike below the threshold, nor about the second largest eigenvalue behind the outliers,
/// which a second such spike would name. Where the law does not know what a claim asks, the cell gets a caveat.
/// `excess_kurtosis`: of the entries of the noise.
void add_predictions(ExperimentCell& cell, const Experiment& experiment, const std::vector<std::string>& codecs,
                     const theory::SeparableLaw& law, const CellSpikes& spikes, double excess_kurtosis);

/// Tells the user which spikes of the cells are not compared with the law one by one, and what is compared instead.
class ClusterNotes {
public:
    void add(const ExperimentCell& cell, const std::vector<theory::SpikeCluster>& clusters);
    /// At most two notes, each with its first cell and the number of cells.
    void write(std::vector<std::string>& notes) const;

private:
    struct Kind {
        std::string first;
        std::size_t cells = 0;
    };
    Kind compared_;
    Kind not_compared_;
};

/// The spikes that have an outlier in a gap of the bulk and none above the top edge. The k-th singular value of a block
/// is then not the outlier of the k-th spike, so that no metric of component k is compared with the theory.
class GapSpikes {
public:
    /// Takes from the cell the limits and predictions about such spikes.
    void withhold(ExperimentCell& cell, const theory::SeparableLaw& law, const std::vector<SignalStrength>& strengths);
    /// At most one note, with the first cell and the number of cells.
    void write(std::vector<std::string>& notes) const;

private:
    std::string first_;
    std::size_t cells_ = 0;
};

}  // namespace spiked::validation
