#include "theory/missing/missing_entries.hpp"

#include "core/runtime/error.hpp"

namespace spiked::theory {
namespace {

Spectrum transformed(const Spectrum& spectrum, double factor, double shift) {
    std::vector<Atom> atoms = spectrum.atoms();
    for (Atom& atom : atoms) atom.value = factor * atom.value + shift;
    return Spectrum(std::move(atoms));
}

}  // namespace

SeenSpectra seen_spectra(const SeenSide& row, const SeenSide& column, double share, double signal_square) {
    if (!(share > 0.0 && share <= 1.0))
        throw usage_error("a fraction of {} of entries seen is not possible (above 0, at most 1): give for example 0.5",
                          share);
    if (share == 1.0) return {row.spectrum, column.spectrum};
    if (!row.diagonal && !column.diagonal)
        throw usage_error(
            "rows and columns of the noise are both correlated (with entries missing, its law is then not separable): "
            "give one side a diagonal covariance");
    const double excess = 1.0 / share - 1.0;
    const auto seen = [&](const SeenSide& side, const SeenSide& other) {
        const double of_signal = excess * signal_square / other.spectrum.mean();
        return side.diagonal ? transformed(side.spectrum, 1.0 / share, of_signal)
                             : transformed(side.spectrum, 1.0, excess * side.spectrum.mean() + of_signal);
    };
    if (!row.diagonal) return {seen(row, column), column.spectrum};
    return {row.spectrum, seen(column, row)};
}

double seen_kurtosis(double kurtosis, double share) { return kurtosis / share; }

double relative_error(const SeparableLaw& law, std::span<const SignalStrength> strengths) {
    double lost = 0.0, whole = 0.0;
    for (const SignalStrength strength : strengths) {
        const SpikePrediction spike = law.spike(strength);
        const double square = strength.value * strength.value;
        whole += square;
        lost += square * (1.0 - spike.overlap_left.value * spike.overlap_right.value);
    }
    return lost / whole;
}

std::vector<LossAtShare> loss_against_share(const SeenSide& row, const SeenSide& column, AspectRatio aspect,
                                            std::span<const SignalStrength> strengths, std::span<const double> shares,
                                            double signal_square) {
    std::vector<LossAtShare> losses;
    for (const double share : shares) {
        const SeenSpectra seen = seen_spectra(row, column, share, signal_square);
        const SeparableLaw law(seen.row, seen.column, aspect);
        losses.push_back({share, law.detection_threshold(), relative_error(law, strengths)});
    }
    return losses;
}

}  // namespace spiked::theory
