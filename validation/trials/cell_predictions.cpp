#include "validation/trials/cell_predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "validation/trials/predictions.hpp"

namespace spiked::validation {
namespace {

std::span<const SignalStrength> strengths_of(const std::vector<SignalStrength>& strengths,
                                             const theory::SpikeCluster& cluster) {
    return std::span(strengths).subspan(cluster.first, cluster.count);
}

/// The mean of a number of the spikes of a cluster.
template <class Number>
double mean_of_cluster(std::span<const SignalStrength> cluster, const Number& number) {
    double sum = 0.0;
    for (const SignalStrength strength : cluster) sum += number(strength);
    return sum / static_cast<double>(cluster.size());
}

void add_limits_of_spike(ExperimentCell& cell, const theory::SpikePrediction& spike, int k) {
    cell.limits.push_back({"outlier", k, spike.outlier.value});
    cell.limits.push_back({"overlap.left", k, spike.overlap_left.value});
    cell.limits.push_back({"overlap.right", k, spike.overlap_right.value});
    cell.limits.push_back({"strength", k, spike.strength.value});
    cell.limits.push_back({"shrunk", k, spike.shrunk(theory::Loss::frobenius).value});
}

template <class Law>
void add_limits_of_cluster(ExperimentCell& cell, const Law& law, std::span<const SignalStrength> cluster, int k) {
    const auto mean = [&](const auto& number) {
        return mean_of_cluster(cluster, [&](SignalStrength strength) { return number(law.spike(strength)); });
    };
    // In the limit the principal angles are those of the single spikes, of which the weakest has the largest.
    const theory::SpikePrediction weakest = law.spike(cluster.back());
    const auto angle = [](Overlap overlap) { return 180.0 / std::numbers::pi * std::acos(std::sqrt(overlap.value)); };
    cell.limits.push_back({"subspace_outlier", k, mean([](const auto& spike) { return spike.outlier.value; })});
    cell.limits.push_back(
        {"subspace_overlap.left", k, mean([](const auto& spike) { return spike.overlap_left.value; })});
    cell.limits.push_back(
        {"subspace_overlap.right", k, mean([](const auto& spike) { return spike.overlap_right.value; })});
    cell.limits.push_back({"subspace_angle.left", k, angle(weakest.overlap_left)});
    cell.limits.push_back({"subspace_angle.right", k, angle(weakest.overlap_right)});
}

void add_limits_in_gap(ExperimentCell& cell, const theory::GapOutlier& outlier) {
    const int k = static_cast<int>(outlier.spike) + 1;
    cell.limits.push_back({"gap_outlier", k, outlier.prediction.outlier.value});
    cell.limits.push_back({"gap_overlap.left", k, outlier.prediction.overlap_left.value});
    cell.limits.push_back({"gap_overlap.right", k, outlier.prediction.overlap_right.value});
}

template <class Law>
void add_limits_of_law(ExperimentCell& cell, const Law& law, const std::vector<SignalStrength>& strengths,
                       const std::vector<theory::SpikeCluster>& clusters) {
    cell.limits.push_back({"bulk_edge", 0, law.bulk_edge().value});
    for (const theory::SpikeCluster& cluster : clusters) {
        const auto own = strengths_of(strengths, cluster);
        int k = static_cast<int>(cluster.first) + 1;
        if (cluster.count > 1 && cluster.detectable) add_limits_of_cluster(cell, law, own, k);
        for (const SignalStrength strength : own) {
            const theory::SpikePrediction spike = law.spike(strength);
            if (cluster.count == 1 || !spike.detectable) add_limits_of_spike(cell, spike, k);
            ++k;
        }
    }
}

/// Adds the predictions of one claim for one method.
class ClaimPredictions {
public:
    ClaimPredictions(ExperimentCell& cell, const std::string& claim, const StudyForm& form, std::size_t method,
                     ClaimPoint at)
        : cell_(cell), claim_(claim), form_(form), method_(method), at_(at) {}

    void add() {
        if (form_.applies(at_)) push(form_.metric, 0, form_.predicted(at_), form_.with_defect(at_));
    }
    void add(const CellSpikes& spikes) {
        for (const theory::SpikeCluster& cluster : spikes.clusters) {
            const auto strengths = strengths_of(spikes.strengths, cluster);
            const bool first_below =
                cluster.first == 0 || at_.law->spike(spikes.strengths[cluster.first - 1]).detectable;
            if (cluster.count == 1 && !cluster.detectable && !first_below) continue;
            if (cluster.count > 1 && (!cluster.detectable || form_.of_clusters.empty())) continue;
            if (!std::all_of(strengths.begin(), strengths.end(),
                             [&](SignalStrength strength) { return form_.applies(with(strength)); }))
                continue;
            if (!std::all_of(strengths.begin(), strengths.end(),
                             [&](SignalStrength strength) { return judged(with(strength)); }))
                continue;
            push(
                cluster.count > 1 ? form_.of_clusters : form_.metric, static_cast<int>(cluster.first) + 1,
                mean_of_cluster(strengths, [&](SignalStrength strength) { return form_.predicted(with(strength)); }),
                mean_of_cluster(strengths, [&](SignalStrength strength) { return form_.with_defect(with(strength)); }));
        }
        if (form_.in_gaps.metric.empty()) return;
        for (const theory::GapOutlier& outlier : spikes.in_gaps)
            if (outlier.separate && judged(with(outlier.prediction.strength)))
                push(form_.in_gaps.metric, static_cast<int>(outlier.spike) + 1,
                     form_.in_gaps.predicted(outlier.prediction), form_.in_gaps.with_defect(spikes.outside, outlier));
    }

private:
    [[nodiscard]] ClaimPoint with(SignalStrength strength) const {
        ClaimPoint at = at_;
        at.strength = strength;
        return at;
    }
    /// Whether the claim is judged at this point; keeps the caveat, if there is one.
    [[nodiscard]] bool judged(const ClaimPoint& at) {
        auto caveat = form_.caveat == nullptr ? std::nullopt : form_.caveat(at);
        if (!caveat) return true;
        caveat->claim = claim_;
        if (std::find(cell_.caveats.begin(), cell_.caveats.end(), *caveat) == cell_.caveats.end())
            cell_.caveats.push_back(*caveat);
        return caveat->judged;
    }
    void push(const std::string& metric, int k, double predicted, double with_defect) {
        cell_.predictions.push_back({claim_, metric, method_, k, predicted, with_defect});
    }

    ExperimentCell& cell_;
    const std::string& claim_;
    const StudyForm& form_;
    std::size_t method_;
    ClaimPoint at_;
};

}  // namespace

void add_limits(ExperimentCell& cell, const theory::SeparableLaw& law, const CellSpikes& spikes) {
    add_limits_of_law(cell, law, spikes.strengths, spikes.clusters);
    for (const theory::GapOutlier& outlier : spikes.in_gaps)
        if (outlier.separate) add_limits_in_gap(cell, outlier);
}

void add_limits(ExperimentCell& cell, const theory::ProfileLaw& law, const std::vector<SignalStrength>& strengths,
                const std::vector<theory::SpikeCluster>& clusters) {
    add_limits_of_law(cell, law, strengths, clusters);
}

std::vector<theory::SpikeCluster> clusters_in_profile(const theory::ProfileLaw& law,
                                                      const std::vector<SignalStrength>& strengths, std::size_t rows,
                                                      std::size_t columns) {
    const theory::SeparableLaw white(theory::identity_spectrum(), theory::identity_spectrum(),
                                     AspectRatio::of(rows, columns));
    const double unit = white.detection_threshold().value / law.detection_threshold().value;
    std::vector<SignalStrength> in_white;
    for (const SignalStrength strength : strengths) in_white.push_back({unit * strength.value});
    return theory::spike_clusters(white, in_white, rows, columns);
}

void add_predictions(ExperimentCell& cell, const Experiment& experiment, const std::vector<std::string>& codecs,
                     const theory::SeparableLaw& law, const CellSpikes& spikes, double excess_kurtosis,
                     bool symmetric) {
    const std::size_t before_codecs = experiment.methods.size() - codecs.size();
    for (const auto& [claim, form] : study_forms()) {
        for (std::size_t m = 0; m < experiment.methods.size(); ++m) {
            const auto& method = experiment.methods[m];
            if (method.kind != form.kind) continue;
            if (!form.codec.empty() && codecs[m - before_codecs] != form.codec) continue;
            ClaimPredictions predictions(cell, claim, form, m,
                                         {&law,
                                          cell.rows,
                                          cell.columns,
                                          {},
                                          static_cast<unsigned>(method.bits.value_or(0.0)),
                                          symmetric,
                                          excess_kurtosis});
            if (form.per_spike)
                predictions.add(spikes);
            else
                predictions.add();
        }
    }
}

void CellsWithNote::write(std::vector<std::string>& notes, std::string_view link, std::string_view consequence) const {
    if (cells == 0) return;
    const std::string others = cells == 1 ? "" : fmt::format(" (and so in {} more of the cells)", cells - 1);
    notes.push_back(fmt::format("{}{}{}: {}", first, link, others, consequence));
}

void ClusterNotes::add(const ExperimentCell& cell, const std::vector<theory::SpikeCluster>& clusters) {
    bool compared = false;
    bool not_compared = false;
    for (const theory::SpikeCluster& cluster : clusters) {
        if (cluster.count == 1) continue;
        CellsWithNote& kind = cluster.detectable ? compared_ : not_compared_;
        (cluster.detectable ? compared : not_compared) = true;
        if (kind.first.empty())
            kind.first =
                fmt::format("{}: the strengths of components {} to {} are closer than {:g} standard deviations",
                            cell.label, cluster.first + 1, cluster.first + cluster.count, theory::separation_of_spikes);
    }
    compared_.cells += compared ? 1 : 0;
    not_compared_.cells += not_compared ? 1 : 0;
}

void ClusterNotes::write(std::vector<std::string>& notes) const {
    constexpr std::string_view mix = ", so that their vectors mix";
    compared_.write(notes, mix,
                    "checks compare their subspaces and mean outlier with the theory (subspace_overlap.left, "
                    "subspace_overlap.right, subspace_outlier), not each overlap and outlier");
    not_compared_.write(notes, mix,
                        "the weakest is below the detection threshold, and checks compare none of them with the "
                        "theory; give strengths that differ more");
}

void GapNotes::add(const ExperimentCell& cell, const CellSpikes& spikes) {
    bool compared = false;
    bool not_compared = false;
    for (const theory::GapOutlier& one : spikes.in_gaps) {
        CellsWithNote& kind = one.separate ? compared_ : not_compared_;
        (one.separate ? compared : not_compared) = true;
        const theory::SupportGap& gap = spikes.outside.gaps()[one.gap];
        if (kind.first.empty())
            kind.first = fmt::format(
                "{}: component {} has no outlier above the top edge of the noise, but one at eigenvalue {:.4g} in its "
                "gap {:.4g} to {:.4g}",
                cell.label, one.spike + 1, one.prediction.outlier.value, gap.lower.value, gap.upper.value);
    }
    compared_.cells += compared ? 1 : 0;
    not_compared_.cells += not_compared ? 1 : 0;
}

void GapNotes::write(std::vector<std::string>& notes) const {
    compared_.write(notes, "",
                    "checks compare that one and its vectors with the theory (gap_outlier, gap_overlap.left, "
                    "gap_overlap.right); the k-th singular value is noise");
    not_compared_.write(notes, "",
                        "the strength of another component is too close for their vectors to be told apart, and "
                        "checks compare nothing in the gap with the theory");
}

}  // namespace spiked::validation
