#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "theory/laws/profile_law.hpp"
#include "theory/laws/separable_law.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "validation/store/experiment.hpp"

namespace spiked::validation {

/// The spikes of a cell, in decreasing order of strength, their clusters, and their outliers in gaps.
struct CellSpikes {
    const std::vector<SignalStrength>& strengths;
    const std::vector<theory::SpikeCluster>& clusters;
    const theory::SupportGaps& outside;              ///< the gaps of the noise
    const std::vector<theory::GapOutlier>& in_gaps;  ///< of the spikes that are seen in one of them only
};

/// Adds the limits of what is measured on the cell's blocks: bulk edge, and for each spike outlier, overlaps, strength
/// and shrunk value. Detectable spikes that are not alone in their cluster have none; a cluster of detectable spikes
/// has those of its subspaces and the mean of its outliers. A spike that is seen in a gap only has those of its outlier
/// there, unless another spike is too close; the k-th largest eigenvalue and its vectors have the limits of noise.
void add_limits(ExperimentCell& cell, const theory::SeparableLaw& law, const CellSpikes& spikes);
/// The same for noise with a variance profile and spikes that are spread evenly.
void add_limits(ExperimentCell& cell, const theory::ProfileLaw& law, const std::vector<SignalStrength>& strengths,
                const std::vector<theory::SpikeCluster>& clusters);

/// The clusters of such spikes. The fluctuations that decide are those of white noise at as many thresholds, because
/// those of the profile are not known; the law of close spikes is about their order of magnitude.
[[nodiscard]] std::vector<theory::SpikeCluster> clusters_in_profile(const theory::ProfileLaw& law,
                                                                    const std::vector<SignalStrength>& strengths,
                                                                    std::size_t rows, std::size_t columns);

/// Adds what the claims of study_forms predict for the methods of the experiment. `codecs`: the names of its last
/// methods. A claim about detectable spikes is tested on a cluster by its metric of clusters. Nothing is predicted
/// about a cluster that holds a spike below the threshold, nor about the second largest eigenvalue behind the outliers,
/// which a second such spike would name. Where the law does not know what a claim asks, the cell gets a caveat.
/// `excess_kurtosis`: of the entries of the noise; `symmetric`: of the blocks.
void add_predictions(ExperimentCell& cell, const Experiment& experiment, const std::vector<std::string>& codecs,
                     const theory::SeparableLaw& law, const CellSpikes& spikes, double excess_kurtosis, bool symmetric);

/// A note on some cells of a study, which names the first of them and the number of all.
struct CellsWithNote {
    std::string first;
    std::size_t cells = 0;

    /// Adds the note, unless there are no such cells. `link` stands between what is said and the number of the others.
    void write(std::vector<std::string>& notes, std::string_view link, std::string_view consequence) const;
};

/// Tells the user which spikes of the cells are not compared with the law one by one, and what is compared instead.
class ClusterNotes {
public:
    void add(const ExperimentCell& cell, const std::vector<theory::SpikeCluster>& clusters);
    /// At most two notes, each with its first cell and the number of cells.
    void write(std::vector<std::string>& notes) const;

private:
    CellsWithNote compared_;
    CellsWithNote not_compared_;
};

/// Tells the user which spikes of the cells are seen in a gap of the noise only, and what is compared with the law.
class GapNotes {
public:
    void add(const ExperimentCell& cell, const CellSpikes& spikes);
    /// At most two notes, each with its first cell and the number of cells.
    void write(std::vector<std::string>& notes) const;

private:
    CellsWithNote compared_;
    CellsWithNote not_compared_;
};

}  // namespace spiked::validation
