#include "validation/claims.hpp"

#include <cmath>

#include "theory/lloyd_max.hpp"
#include "theory/rate_distortion.hpp"
#include "theory/tracy_widom.hpp"

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

const std::vector<Claim>& claims() {
    static const std::vector<Claim> table = {
        {"outlier.location", "paper, outlier location (appendix, singular values)",
         "a spike above the threshold puts an observed eigenvalue at theta(d)", "theta at a strength 10 % too large",
         "outlier", "sample", "", true, above_threshold, [](const ClaimPoint& at) { return spike(at).outlier.value; },
         [](const ClaimPoint& at) { return spike(at, 1.1).outlier.value; }},
        {"overlap.left", "paper, singular vectors (appendix)",
         "the squared overlap of true and observed left vectors is a1(d), and 0 below the threshold",
         "the observed vectors taken for the true ones: overlap 1", "overlap.left", "sample", "", true, above_threshold,
         [](const ClaimPoint& at) { return spike(at).overlap_left.value; }, [](const ClaimPoint&) { return 1.0; }},
        {"overlap.right", "paper, singular vectors (appendix)",
         "the squared overlap of true and observed right vectors is a2(d), and 0 below the threshold",
         "the observed vectors taken for the true ones: overlap 1", "overlap.right", "sample", "", true,
         above_threshold, [](const ClaimPoint& at) { return spike(at).overlap_right.value; },
         [](const ClaimPoint&) { return 1.0; }},
        {"detection.threshold", "paper, BBP transition (Section 3)",
         "a spike below the threshold leaves no outlier: the largest eigenvalue stays at the bulk edge, shifted by the "
         "mean of the Tracy-Widom law",
         "a threshold at half its value: the spike would be seen at 1.5 thresholds", "outlier", "sample", "", true,
         below_threshold,
         [](const ClaimPoint& at) {
             return at.law->bulk_edge().value +
                    theory::tracy_widom_mean /
                        (at.law->tracy_widom_scale() * std::pow(static_cast<double>(at.columns), 2.0 / 3.0));
         },
         [](const ClaimPoint& at) { return at.law->spike({1.5 * at.law->detection_threshold().value}).outlier.value; }},
        {"turboquant.distortion", "TurboQuant, Theorem 1; paper Section 2",
         "a row quantized with B bits has relative squared error D_B(d), the Lloyd-Max distortion of a coordinate of "
         "the "
         "sphere, whatever the row",
         "the upper bound sqrt(3) pi / 2 4^-B taken for the value", "distortion", "codec", "tq-mse", false, everywhere,
         distortion,
         [](const ClaimPoint& at) {
             return theory::panter_dite_constant * std::pow(4.0, -static_cast<double>(at.bits));
         }},
        {"turboquant.linear-bias", "paper, Proposition on the residual, part 3 (corrected form)",
         "the decoded row keeps the share 1 - D_B(d) of every inner product with it: the bias is linear, not "
         "quadratic, in the row",
         "an unbiased decoder", "linear_gain", "codec", "tq-mse", false, everywhere,
         [](const ClaimPoint& at) { return 1.0 - distortion(at); }, [](const ClaimPoint&) { return 1.0; }},
    };
    return table;
}

const Claim* find_claim(std::string_view id) {
    for (const auto& claim : claims())
        if (claim.id == id) return &claim;
    return nullptr;
}

}  // namespace spiked::validation
