#pragma once
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "theory/laws/profile_law.hpp"
#include "theory/laws/support_gaps.hpp"

namespace spiked::theory {

/// The part of the positive axis below the top edge that lies outside the bulk of noise with a variance profile, and
/// the outliers of a spike there: SupportGaps for ProfileLaw. Both transforms L and R that a spike sees increase in a
/// gap, and it has an outlier where both are negative and T(z) = z L R = 1/strength^2; T falls.
///
/// Source: at a point outside the bulk the solution of the quadratic vector equation is real, and the fraction of the n
/// eigenvalues above it is the weight of the classes of rows with m_a > 0 and, times d/n, of those of columns with r_b
/// > 0 (Alt, Erdos and Kruger 2020, band masses). The equation is solved on a grid of 400 points, and between three
/// points of which the middle one has the least density. Accuracy: ends 1e-10 relative, outliers and overlaps 1e-11
/// away from them, the strengths at the ends 1e-5. A gap that is narrower than about 1 % of its position can be missed,
/// and so can one below 1e-5 of the top edge. Cost: 500 to 1000 points of ProfileLaw::density, a tenth of a second
/// for 2 x 2 classes.
class ProfileGaps {
public:
    /// Throws usage_error for directions like ProfileLaw::spike. `law` has to outlive it.
    explicit ProfileGaps(const ProfileLaw& law, const SpikeDirection& direction = {});

    /// The gaps from the top down.
    [[nodiscard]] const std::vector<SupportGap>& gaps() const { return gaps_; }
    /// The outlier of a spike in the gap with this number; nothing when the strength leaves none there.
    [[nodiscard]] std::optional<SpikePrediction> spike(std::size_t gap, SignalStrength strength) const;

private:
    static bool is_outside(double density) { return density < 1e-6; }
    /// The solution at a point, in units of the law, and how far it is from real.
    struct Place {
        ProfileLaw::Seen at;
        double mass_above = 0.0;
        double density = 0.0;  ///< the largest imaginary part over the largest modulus
        [[nodiscard]] bool outside() const { return is_outside(density); }
    };
    [[nodiscard]] Place place(double z) const;
    [[nodiscard]] double end(double outside, double inside) const;
    [[nodiscard]] std::optional<double> emptiest(double low, double high) const;
    void add(double lower, double upper, double within);
    /// strength^2 T - 1 where both transforms are negative, otherwise negative.
    [[nodiscard]] double beyond(double z, double strength) const;

    const ProfileLaw& law_;
    SpikeDirection direction_;
    std::vector<SupportGap> gaps_;
    std::vector<std::pair<double, double>> ends_;  ///< of the gaps, just inside them
};

}  // namespace spiked::theory
