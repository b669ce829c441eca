#include "estimators/spectral/screenot.hpp"

#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "estimators/ranks/edge_fit.hpp"
#include "estimators/spectral/noise_imputation.hpp"
#include "estimators/spectral/spectral_family.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/root.hpp"

template <>
struct spiked::EnumNames<spiked::estimators::ScreeNotFill> {
    static constexpr EnumName<spiked::estimators::ScreeNotFill> table[] = {
        {spiked::estimators::ScreeNotFill::impute, "i"},
        {spiked::estimators::ScreeNotFill::winsorize, "w"},
        {spiked::estimators::ScreeNotFill::zero, "0"}};
};

namespace spiked::estimators {
namespace {

std::size_t usable_bound(std::size_t bound, std::size_t p, ScreeNotFill fill) {
    if (p == 0) return 0;
    return std::min(bound, fill == ScreeNotFill::impute ? (p - 1) / 2 : p - 1);
}

/// y D'/D + 4 and its slope in log y, where D = phi psi and psi = gamma phi + (1 - gamma)/y.
theory::ValueAndSlope condition(std::span<const double> noise, double gamma, double y) {
    double phi = 0.0;
    double phi_1 = 0.0;
    double phi_2 = 0.0;
    for (const double f : noise) {
        const double term = 1.0 / ((y - f) * (y + f));
        phi += y * term;
        phi_1 -= (y * y + f * f) * term * term;
        phi_2 += 2.0 * y * (y * y + 3.0 * f * f) * term * term * term;
    }
    const double count = static_cast<double>(noise.size());
    phi /= count, phi_1 /= count, phi_2 /= count;
    const double psi = gamma * phi + (1.0 - gamma) / y;
    const double psi_1 = gamma * phi_1 - (1.0 - gamma) / (y * y);
    const double psi_2 = gamma * phi_2 + 2.0 * (1.0 - gamma) / (y * y * y);
    const double a = phi_1 / phi;
    const double b = psi_1 / psi;
    return {y * (a + b) + 4.0, y * (a + b) + y * y * (phi_2 / phi - a * a + psi_2 / psi - b * b)};
}

/// The threshold relative to the largest singular value; `bound` has been reduced by usable_bound.
double relative_threshold(const RelativeSpectrum& spectrum, std::size_t bound, ScreeNotFill fill) {
    std::vector<double> noise = spectrum.values;
    if (fill == ScreeNotFill::impute)
        impute_top(noise, bound, 0.0);
    else
        std::fill_n(noise.begin(), bound, fill == ScreeNotFill::winsorize ? spectrum.values[bound] : 0.0);
    const double top = *std::max_element(noise.begin(), noise.end());
    if (top == 0.0) return 0.0;
    for (double& value : noise) value /= top;
    const double gamma = static_cast<double>(spectrum.size()) / static_cast<double>(spectrum.shape.long_side());
    return top * theory::increasing_root([&](double y) { return condition(noise, gamma, y); }, 1.5, 1.0,
                                         std::numeric_limits<double>::infinity());
}

}  // namespace

double screenot_threshold(std::span<const double> singular_values, Shape shape, std::size_t bound, ScreeNotFill fill) {
    const RelativeSpectrum spectrum(singular_values, shape);
    if (spectrum.unit == 0.0) return 0.0;
    return spectrum.unit * relative_threshold(spectrum, usable_bound(bound, spectrum.size(), fill), fill);
}

Shrinkage screenot(std::span<const double> singular_values, Shape shape, std::size_t bound, ScreeNotFill fill) {
    const RelativeSpectrum spectrum(singular_values, shape);
    if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
    const std::size_t p = spectrum.size();
    const std::size_t usable = usable_bound(bound, p, fill);
    const double threshold = relative_threshold(spectrum, usable, fill);
    if (threshold == 0.0)
        return unshrunk(spectrum, spectrum.above_rounding, "the block is exactly of low rank: nothing to cut off");
    std::size_t rank = 0;
    while (rank < p && spectrum.values[rank] > threshold) ++rank;
    Shrinkage result = truncated(spectrum, rank);
    if (usable < bound)
        result.note = fmt::format("the rank bound {} leaves too few noise values of {} singular values: lowered to {}",
                                  bound, p, usable);
    else
        result.note = more_than_bound(spectrum.eigenvalues, theory::pilot_count(p),
                                      std::pow(static_cast<double>(p), -1.0 / 3.0), bound);
    return result;
}

SpectralFamily screenot_family() {
    return {{{"screenot",
              "optimal hard threshold under noise of any spectrum, given an upper bound of the rank",
              {{"", whole("K"), "upper bound of the rank, required"},
               {"impute", one_of<ScreeNotFill>(),
                "noise values in place of the first K: i extrapolates them, w repeats the largest remaining one, 0 "
                "sets zeros",
                "i"}},
              "Donoho, Gavish & Romanov 2023"},
             false,
             "10",
             true},
            [](const NameOptions& named, theory::Loss, const KnownLaw&) -> SpectralEstimator {
                const std::size_t bound = required_whole(named, "the bound of its rank", "screenot:10");
                const ScreeNotFill fill = named.choice_or_default<ScreeNotFill>("impute");
                return {named.text(), [bound, fill](std::span<const double> singular_values, Shape shape) {
                            return screenot(singular_values, shape, bound, fill);
                        }};
            }};
}

}  // namespace spiked::estimators
