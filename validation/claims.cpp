#include "validation/claims.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "theory/base/error.hpp"
#include "theory/lloyd_max.hpp"
#include "theory/rate_distortion.hpp"
#include "theory/tracy_widom.hpp"
#include "validation/claims/bed.hpp"

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

/// Claims that a study can check in its own cells.
const std::vector<std::pair<std::string, StudyForm>>& study_forms() {
    static const std::vector<std::pair<std::string, StudyForm>> forms = {
        {"outlier.location",
         {"theta at a strength 10 % too large", "outlier", "sample", "", true, above_threshold,
          [](const ClaimPoint& at) { return spike(at).outlier.value; },
          [](const ClaimPoint& at) { return spike(at, 1.1).outlier.value; }}},
        {"overlap.left",
         {"the observed vectors taken for the true ones: overlap 1", "overlap.left", "sample", "", true,
          above_threshold, [](const ClaimPoint& at) { return spike(at).overlap_left.value; },
          [](const ClaimPoint&) { return 1.0; }}},
        {"overlap.right",
         {"the observed vectors taken for the true ones: overlap 1", "overlap.right", "sample", "", true,
          above_threshold, [](const ClaimPoint& at) { return spike(at).overlap_right.value; },
          [](const ClaimPoint&) { return 1.0; }}},
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

std::vector<Claim> all_claims() {
    std::vector<Claim> all;
    for (auto list : {outlier_claims, vector_claims, shrinkage_claims, rank_claims, white_noise_claims, residual_claims,
                      row_claims, quantizer_claims, compression_claims}) {
        auto claims = list();
        std::move(claims.begin(), claims.end(), std::back_inserter(all));
    }
    for (const auto& [id, form] : study_forms()) {
        const auto claim = std::find_if(all.begin(), all.end(), [&id = id](const Claim& one) { return one.id == id; });
        if (claim == all.end()) throw bug("no claim \"{}\" for a study to check", id);
        claim->in_study = form;
    }
    return all;
}

}  // namespace

std::string_view name_of(Form form) { return form == Form::printed ? "printed" : "corrected"; }
std::string_view name_of(PrintedVerdict verdict) {
    constexpr std::string_view names[] = {"none", "holds", "refuted", "inconclusive", "vacuous"};
    return names[static_cast<int>(verdict)];
}
std::string_view name_of(Summary summary) {
    constexpr std::string_view names[] = {"mean", "share", "rate", "growth", "distance"};
    return names[static_cast<int>(summary)];
}

const std::vector<Claim>& claims() {
    static const std::vector<Claim> table = all_claims();
    return table;
}

const Claim* find_claim(std::string_view id) {
    for (const auto& claim : claims())
        if (claim.id == id) return &claim;
    return nullptr;
}

}  // namespace spiked::validation
