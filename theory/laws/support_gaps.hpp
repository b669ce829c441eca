#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "theory/laws/quantities.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::theory {

/// An interval of eigenvalues of Z Z^T below the top edge that holds no bulk, with bulk above it. A spike can leave an
/// outlier in it, also one that is too weak for an outlier above the top edge.
struct SupportGap {
    Eigenvalue lower;         ///< upper end of the bulk component below; 0 when there is none
    Eigenvalue upper;         ///< lower end of the bulk component above
    double mass_above = 0.0;  ///< fraction of the n eigenvalues above the gap
    /// Strengths strictly between these have one outlier in the gap, which grows with the strength. Both are infinite
    /// when no strength has one; `strongest` alone is infinite when arbitrarily strong spikes have one.
    SignalStrength weakest;
    SignalStrength strongest;
};

/// The part of the positive axis below the top edge that lies outside the support of a separable law: the gaps between
/// components of the bulk, and the interval between zero and the bulk when the bulk does not reach zero.
///
/// Source: for real z outside the support the self-consistent equations of SeparableLaw have real solutions M1, M2.
/// With a = -1/M2 and b = -1/M1 they are n/d sum w x/(a - x) = t = sum v y/(b - y) and z = t a b, and the law's
/// solution is the one with dz/da > 0 (Silverstein and Choi 1995 for B = I; Couillet and Hachem 2014 for the separable
/// law). In a gap a and b stay between two neighbouring atoms each, or one of them moves from above all atoms through
/// infinity to the negative axis. A pair of such intervals holds at most one gap, because the mass above a gap is the
/// weight of the atoms above a and b (exact separation). A pair can hold one only where n/d sum w x^2/(a - x)^2 < 1 and
/// sum v y^2/(b - y)^2 < n/d, which few intervals between neighbouring atoms are wide enough for.
/// Accuracy: 1e-12 relative for edges, outliers and overlaps, conditioned like the square root of the distance to the
/// ends of the gap. A gap whose width is below about 1e-6 of its position can be missed.
/// Cost: one pass over the atoms, and a few thousand passes for each pair of intervals that is wide enough; a few
/// hundred passes for the gap below the bulk alone.
class SupportGaps {
public:
    enum class Which { all, below_bulk };  ///< below_bulk: only the gap between zero and the bulk, if there is one
    explicit SupportGaps(const SeparableLaw& law, Which which = Which::all);

    /// The gaps from the top down.
    [[nodiscard]] const std::vector<SupportGap>& gaps() const { return gaps_; }
    /// The outlier of a spike in the gap with this number; nothing when the strength leaves none there.
    [[nodiscard]] std::optional<SpikePrediction> spike(std::size_t gap, SignalStrength strength) const;

private:
    /// The positive atoms of a side.
    struct Side : RelativeAtoms {
        double factor;  ///< t = factor * sum w x/(a - x): n/d for A, 1 for B
        Side(const Spectrum& spectrum, double factor);
    };
    /// The quantities of the curve z(a) at one a.
    struct Point {
        double t = 0.0;
        double t_slope = 0.0;  ///< dt/da
        double z = 0.0;
        double z_slope = 0.0;      ///< dz/da
        double contraction = 0.0;  ///< below 1 exactly outside the support
    };
    /// A pair of intervals between neighbouring atoms, given by the number of atoms above each. `first` is the side
    /// whose position a is the parameter; the other side has 0 atoms above it when b lies above all or is negative.
    struct Branch {
        bool row_first = true;
        std::size_t first = 0;
        std::size_t second = 0;
        double low = 0.0;   ///< a at the lower end of the gap
        double high = 0.0;  ///< a at its upper end
    };

    [[nodiscard]] std::optional<double> reciprocal(const Side& side, std::size_t above, double t) const;
    [[nodiscard]] std::optional<Point> at(const Branch& branch, double a) const;
    [[nodiscard]] std::optional<Branch> find(Branch branch) const;
    void add(const Branch& branch);

    Side row_;
    Side column_;
    double beta_;
    double scale_;  ///< largest atom of A times largest atom of B; eigenvalues are divided by it
    std::vector<Branch> branches_;
    std::vector<SupportGap> gaps_;
};

/// An outlier of a spike and where it lies.
struct PlacedOutlier {
    std::optional<std::size_t> gap;  ///< number of the gap it lies in; nothing: above the top edge
    SpikePrediction prediction;
};

/// All outliers of a spike, from the top down: `above`, the prediction of the law above its top edge, if it is
/// detectable there, and the one in every gap that has one. Their squared overlaps with the true vectors add up to at
/// most 1 on each side. `outside`: the gaps of the same law (SupportGaps, or ProfileGaps for the same direction).
template <class Gaps>
[[nodiscard]] std::vector<PlacedOutlier> all_outliers(const SpikePrediction& above, const Gaps& outside) {
    std::vector<PlacedOutlier> found;
    if (above.detectable) found.push_back({std::nullopt, above});
    for (std::size_t gap = 0; gap < outside.gaps().size(); ++gap)
        if (const auto inside = outside.spike(gap, above.strength)) found.push_back({gap, *inside});
    return found;
}

}  // namespace spiked::theory
