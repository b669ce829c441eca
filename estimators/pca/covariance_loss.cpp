#include "estimators/pca/covariance_loss.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::estimators {
namespace {

// l is the spike, c the squared cosine and s the squared sine. Sums that the formulas share:
// l c + s = w' A w and c + l s = l w' A^-1 w.

double of_difference(double l, double c) { return l * c + (1.0 - c); }
double of_inverse(double l, double c) { return l / (c + l * (1.0 - c)); }
double of_debiasing(double l, double) { return l; }

double nuclear_difference(double l, double c) { return std::max(1.0, 1.0 + (l - 1.0) * (2.0 * c - 1.0)); }

double nuclear_inverse(double l, double c) { return std::max(1.0, l / (c + (2.0 * l - 1.0) * (1.0 - c))); }

double frobenius_relative(double l, double c) {
    const double sum = c + l * (1.0 - c);
    return 1.0 + (l - 1.0) * c / (sum * sum);
}

double operator_relative(double l, double c) { return 1.0 + (l - 1.0) / (c + l * (1.0 - c)); }

double nuclear_relative(double l, double c) {
    const double sum = c + l * (1.0 - c);
    return std::max(1.0, (l - (l - 1.0) * (l - 1.0) * c * (1.0 - c)) / (sum * sum));
}

double frobenius_ratio(double l, double c) {
    const double s = 1.0 - c;
    return l * (c + l * s) / (c + l * l * s);
}

double nuclear_ratio(double l, double c) { return std::max(1.0, l / (c + l * l * (1.0 - c))); }

double frobenius_reverse_ratio(double l, double c) {
    const double s = 1.0 - c;
    return (l * l * c + s) / (l * c + s);
}

double nuclear_reverse_ratio(double l, double c) { return std::max(1.0, (l * l * c + (1.0 - c)) / l); }

double of_divergence(double l, double c) {
    const double s = 1.0 - c;
    return std::sqrt(l * (l * c + s) / (c + l * s));
}

double of_bhattacharyya(double l, double c) {
    const double s = 1.0 - c;
    return ((1.0 + c) * l + s) / (1.0 + c + l * s);
}

double frobenius_root(double l, double c) {
    const double root = std::sqrt(l) * c + (1.0 - c);
    return root * root;
}

}  // namespace

const Registry<CovarianceLoss>& covariance_losses() {
    static const std::string source = "Donoho, Gavish & Johnstone 2018";
    static const Registry<CovarianceLoss> losses(
        "loss",
        {{{"frobenius", "||E - C||_F of the covariance C and its estimate E", {}, source}, of_difference},
         {{"operator", "||E - C||_op, its largest singular value", {}, source, {"spectral"}}, of_debiasing},
         {{"nuclear", "||E - C||_*, the sum of its singular values", {}, source, {"trace"}}, nuclear_difference},
         {{"inverse-frobenius", "||E^-1 - C^-1||_F", {}, source, {"precision"}}, of_inverse},
         {{"inverse-operator", "||E^-1 - C^-1||_op", {}, source}, of_debiasing},
         {{"inverse-nuclear", "||E^-1 - C^-1||_*", {}, source}, nuclear_inverse},
         {{"relative-frobenius", "||C^-1/2 E C^-1/2 - I||_F", {}, source}, frobenius_relative},
         {{"relative-operator", "||C^-1/2 E C^-1/2 - I||_op", {}, source}, operator_relative},
         {{"relative-nuclear", "||C^-1/2 E C^-1/2 - I||_*", {}, source}, nuclear_relative},
         {{"ratio-frobenius", "||C^-1 E - I||_F", {}, source}, frobenius_ratio},
         {{"ratio-nuclear", "||C^-1 E - I||_*", {}, source}, nuclear_ratio},
         {{"reverse-ratio-frobenius", "||E^-1 C - I||_F", {}, source}, frobenius_reverse_ratio},
         {{"reverse-ratio-nuclear", "||E^-1 C - I||_*", {}, source}, nuclear_reverse_ratio},
         {{"stein", "tr(C^-1 E - I) - log det(C^-1 E)", {}, source}, of_inverse},
         {{"entropy", "tr(E^-1 C - I) - log det(E^-1 C), Stein's loss of the inverses", {}, source}, of_difference},
         {{"divergence", "the sum of stein and entropy", {}, source}, of_divergence},
         {{"bhattacharyya", "log det((C + E) / 2) - log det(C E) / 2", {}, source}, of_bhattacharyya},
         {{"root-frobenius", "||E^1/2 - C^1/2||_F, Frechet's discrepancy of the source", {}, source, {"frechet"}},
          frobenius_root}});
    return losses;
}

double shrunk_eigenvalue(const CovarianceLoss& loss, Eigenvalue population, Overlap squared_cosine,
                         double noise_level) {
    const double spike = population.value / noise_level;
    return noise_level * std::clamp(loss.shrunk(spike, squared_cosine.value), 1.0, spike);
}

}  // namespace spiked::estimators
