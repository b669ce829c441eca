#include "validation/trials/predictions.hpp"

#include <cmath>

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

double distortion(const ClaimPoint& at) {
    return theory::lloyd_max_sphere(static_cast<int>(at.columns), static_cast<int>(at.bits)).distortion;
}

}  // namespace

const std::vector<std::pair<std::string, StudyForm>>& study_forms() {
    static const std::vector<std::pair<std::string, StudyForm>> forms = {
        {"outlier.location",
         {"theta at a strength 10 % too large", "outlier", "sample", "", true, above_threshold,
          [](const ClaimPoint& at) { return spike(at).outlier.value; },
          [](const ClaimPoint& at) { return spike(at, 1.1).outlier.value; }, "subspace_outlier"}},
        // Below the threshold the largest eigenvalue stays at the edge, shifted by the mean of its fluctuation.
        {"threshold.detection",
         {"a threshold at half its value: the spike would be seen at 1.5 thresholds", "outlier", "sample", "", true,
          below_threshold,
          [](const ClaimPoint& at) {
              return at.law->bulk_edge().value +
                     theory::tracy_widom_mean /
                         (at.law->tracy_widom_scale() * std::pow(static_cast<double>(at.columns), 2.0 / 3.0));
          },
          [](const ClaimPoint& at) {
              return at.law->spike({1.5 * at.law->detection_threshold().value}).outlier.value;
          }}},
        {"overlap.left",
         {"the observed vectors taken for the true ones: overlap 1", "overlap.left", "sample", "", true,
          above_threshold, [](const ClaimPoint& at) { return spike(at).overlap_left.value; },
          [](const ClaimPoint&) { return 1.0; }, "subspace_overlap.left"}},
        {"overlap.right",
         {"the observed vectors taken for the true ones: overlap 1", "overlap.right", "sample", "", true,
          above_threshold, [](const ClaimPoint& at) { return spike(at).overlap_right.value; },
          [](const ClaimPoint&) { return 1.0; }, "subspace_overlap.right"}},
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
