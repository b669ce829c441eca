#include "validation/trials/predictions.hpp"

#include <algorithm>
#include <cmath>

#include "theory/laws/entry_kurtosis.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/tracy_widom.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/rate_distortion.hpp"

namespace spiked::validation {
namespace {

bool everywhere(const ClaimPoint&) { return true; }
bool above_threshold(const ClaimPoint& at) { return at.strength.value > at.law->detection_threshold().value; }
bool below_threshold(const ClaimPoint& at) { return at.strength.value < at.law->detection_threshold().value; }

theory::SpikePrediction spike(const ClaimPoint& at, double factor = 1.0) {
    return at.law->spike({factor * at.strength.value});
}

bool entries_known(const ClaimPoint& at) {
    return at.excess_kurtosis == 0.0 || (theory::is_white(*at.law) && std::isfinite(at.excess_kurtosis));
}

/// The entries for the corrections of the law: Gaussian ones where the effect of others is unknown.
theory::NoiseEntries entries_of(const ClaimPoint& at) {
    return {.excess_kurtosis = entries_known(at) ? at.excess_kurtosis : 0.0};
}

double edge_shift(const ClaimPoint& at) { return theory::kurtosis_edge_shift(*at.law, at.columns, entries_of(at)); }

/// The shift that the entries add to the outlier of a detectable spike `factor` times as strong.
double outlier_shift(const ClaimPoint& at, double factor = 1.0) {
    const theory::NoiseEntries entries = entries_of(at);
    if (entries.excess_kurtosis == 0.0) return 0.0;
    const SignalStrength strength{factor * at.strength.value};
    return at.law->spike(strength).outlier.value *
           theory::spike_fluctuation(*at.law, strength, at.rows, at.columns, entries).of_entries.outlier_shift;
}

/// The unit of Tracy-Widom fluctuations of the largest noise eigenvalue.
double edge_unit(const ClaimPoint& at) {
    return 1.0 / (at.law->tracy_widom_scale() * std::pow(static_cast<double>(at.columns), 2.0 / 3.0));
}

/// A shift by the kurtosis is known to first order, which is too large by about its square. While it is below the
/// standard deviation of the largest noise eigenvalue, the sum was within 1.5 % of simulations at n = d = 64.
std::optional<Caveat> caveat_of_entries(const ClaimPoint& at, double shift) {
    if (!entries_known(at))
        return Caveat{.judged = true,
                      .why = theory::is_white(*at.law)
                                 ? "the fourth moment of the entries is infinite, and their effect unknown"
                                 : "the effect of entries that are not Gaussian is known for white noise only"};
    if (std::abs(shift) > std::sqrt(theory::tracy_widom_variance) * edge_unit(at))
        return Caveat{.why =
                          "the kurtosis of the entries moves the eigenvalue by more than the noise does, and this "
                          "shift is known to first order only"};
    return std::nullopt;
}

std::optional<Caveat> caveat_of_edge(const ClaimPoint& at) {
    if (at.symmetric)
        return Caveat{.why =
                          "the largest singular value of symmetric noise is the larger of two ends of its spectrum, "
                          "which spiked theory --symmetric has"};
    const double few = 3.0 / static_cast<double>(std::min(at.rows, at.columns));
    if (!at.law->edge_regularity(few).regular)
        return Caveat{.why =
                          "the largest noise eigenvalues are those of a few detached variances, which do not follow "
                          "the edge"};
    const double width = 1.0 / std::cbrt(static_cast<double>(std::min(at.rows, at.columns)));
    if (at.strength.value >= (1.0 - width) * at.law->detection_threshold().value)
        return Caveat{.why =
                          "within min(n, d)^(-1/3) of the threshold a spike below it moves the largest eigenvalue "
                          "off the edge"};
    return caveat_of_entries(at, edge_shift(at));
}

/// The outlier of a strength 10 % larger, or the end of the gap where that one would have left it.
double stronger_in_gap(const theory::SupportGaps& outside, const theory::GapOutlier& at) {
    const auto stronger = outside.spike(at.gap, {1.1 * at.prediction.strength.value});
    return stronger ? stronger->outlier.value : outside.gaps()[at.gap].upper.value;
}
double certain_in_gap(const theory::SupportGaps&, const theory::GapOutlier&) { return 1.0; }

double distortion(const ClaimPoint& at) {
    return theory::lloyd_max_sphere(static_cast<int>(at.columns), static_cast<int>(at.bits)).distortion;
}

}  // namespace

const std::vector<std::pair<std::string, StudyForm>>& study_forms() {
    static const std::vector<std::pair<std::string, StudyForm>> forms = {
        {"outlier.location",
         {"theta at a strength 10 % too large",
          "outlier",
          "sample",
          "",
          true,
          above_threshold,
          [](const ClaimPoint& at) { return spike(at).outlier.value + outlier_shift(at); },
          [](const ClaimPoint& at) { return spike(at, 1.1).outlier.value + outlier_shift(at, 1.1); },
          "subspace_outlier",
          [](const ClaimPoint& at) { return caveat_of_entries(at, outlier_shift(at)); },
          {"gap_outlier", [](const theory::SpikePrediction& at) { return at.outlier.value; }, stronger_in_gap}}},
        // Below the threshold the largest eigenvalue stays at the edge, shifted by the mean of its fluctuation and by
        // the kurtosis of the entries.
        {"threshold.detection",
         {"a threshold at half its value: the spike would be seen at 1.5 thresholds", "outlier", "sample", "", true,
          below_threshold,
          [](const ClaimPoint& at) {
              return at.law->bulk_edge().value + theory::tracy_widom_mean * edge_unit(at) + edge_shift(at);
          },
          [](const ClaimPoint& at) { return at.law->spike({1.5 * at.law->detection_threshold().value}).outlier.value; },
          "", caveat_of_edge}},
        {"overlap.left",
         {"the observed vectors taken for the true ones: overlap 1",
          "overlap.left",
          "sample",
          "",
          true,
          above_threshold,
          [](const ClaimPoint& at) { return spike(at).overlap_left.value; },
          [](const ClaimPoint&) { return 1.0; },
          "subspace_overlap.left",
          nullptr,
          {"gap_overlap.left", [](const theory::SpikePrediction& at) { return at.overlap_left.value; },
           certain_in_gap}}},
        {"overlap.right",
         {"the observed vectors taken for the true ones: overlap 1",
          "overlap.right",
          "sample",
          "",
          true,
          above_threshold,
          [](const ClaimPoint& at) { return spike(at).overlap_right.value; },
          [](const ClaimPoint&) { return 1.0; },
          "subspace_overlap.right",
          nullptr,
          {"gap_overlap.right", [](const theory::SpikePrediction& at) { return at.overlap_right.value; },
           certain_in_gap}}},
        {"lloyd-max.distortion",
         {"the upper bound sqrt(3) pi / 2 4^-B taken for the value", "distortion", "codec", "tq-mse", false, everywhere,
          distortion,
          [](const ClaimPoint& at) {
              return theory::panter_dite_constant * std::pow(4.0, -static_cast<double>(at.bits));
          }}},
        {"bias.linear",
         {"an unbiased decoder", "linear_gain", "codec", "tq-mse", false, everywhere,
          [](const ClaimPoint& at) { return 1.0 - distortion(at); }, [](const ClaimPoint&) { return 1.0; }}},
    };
    return forms;
}

}  // namespace spiked::validation
