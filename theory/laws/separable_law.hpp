#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "theory/laws/quantities.hpp"
#include "theory/laws/shrinkers.hpp"
#include "theory/laws/spectrum.hpp"

namespace spiked::theory {

/// The predictions of the law for one outlier of a spike: the one above the top edge (SeparableLaw), or one in a gap of
/// the bulk (SupportGaps).
struct SpikePrediction {
    SignalStrength strength;
    bool detectable = false;              ///< the outlier is above the top edge, or in the gap that was asked for
    Eigenvalue outlier;                   ///< limit of the observed eigenvalue; the bulk edge when not detectable
    double stieltjes_left = 0.0;          ///< of the law of Z Z^T at the outlier; negative
    double stieltjes_right = 0.0;         ///< of the law of Z^T Z at the outlier; negative
    double d_transform = 0.0;             ///< T at the outlier: 1 / strength^2 when detectable
    double d_transform_derivative = 0.0;  ///< T' there; minus infinity when not detectable
    Overlap overlap_left;                 ///< of the vectors of length n; 0 when not detectable
    Overlap overlap_right;                ///< of the vectors of length d; 0 when not detectable
    SingularValue residual;  ///< observed minus Frobenius-shrunk singular value, at most the root of the edge

    /// The optimal singular value; 0 when not detectable.
    [[nodiscard]] SingularValue shrunk(Loss loss) const {
        return {shrink(strength.value, overlap_left.value, overlap_right.value, loss)};
    }
};

/// Whether the top of the spectrum is a bulk edge, or the edge of the separate cluster of a few detached eigenvalues.
struct EdgeRegularity {
    bool regular = true;
    std::string note;  ///< empty when regular; otherwise it names the detached atoms and the results that do not apply
};

/// The curve z(t) at one spike to third order, with F = -dlog z / dlog t. Fluctuations are computed from it. 1 - F is
/// stored separately, because it is small for strong spikes.
struct SpikeCurve {
    double t = 0.0;
    double z = 0.0;                 ///< the outlier
    double fall = 0.0;              ///< F
    double one_minus_fall = 0.0;    ///< 1 - F
    double slope = 0.0;             ///< -dF / dlog t, positive
    double slope_derivative = 0.0;  ///< derivative of `slope` with respect to log t
};

/// The limiting law of Z = A^{1/2} X B^{1/2} for an n x d matrix X with independent entries of variance 1/d, and of
/// S + Z for a low-rank S in general position. A (`row`, n x n) and B (`column`, d x d) enter through their spectra,
/// n/d through `aspect`. Edges and outliers are eigenvalues of Z Z^T (squared singular values); strengths are singular
/// values.
///
/// Source: research note theory.md 1.2. The self-consistent equations (1.1; m_1c and m_2c of Ding and Yang 2021) are
/// solved along a curve with one parameter t > 0, on which every quantity is elementary. For real arguments at or above
/// the edge there is no two-dimensional iteration, and no iteration can diverge.
/// Accuracy: about 1e-14 relative for well-separated spikes, conditioned like strength / (strength - threshold) near
/// the threshold. This holds for aspects from 0.01 to 100 and beyond and for any number of atoms, including zeros.
/// Cost: about 15 passes over the atoms of both sides to construct, and as many for each query.
/// Objects are immutable and can be shared between threads.
class SeparableLaw {
public:
    /// Throws usage_error unless the edge lies within 1e-280 to 1e280, where doubles have full precision.
    SeparableLaw(Spectrum row, Spectrum column, AspectRatio aspect);

    [[nodiscard]] const Spectrum& row() const { return row_spectrum_; }
    [[nodiscard]] const Spectrum& column() const { return column_spectrum_; }
    [[nodiscard]] AspectRatio aspect() const { return aspect_; }

    /// Right end of the support of Z Z^T.
    [[nodiscard]] Eigenvalue bulk_edge() const { return {edge_.z}; }
    /// The threshold of the top edge: the smallest strength with an outlier above it. Where the bulk has several
    /// components, or zero rows or columns, weaker spikes can have outliers in its gaps: SupportGaps.
    [[nodiscard]] SignalStrength detection_threshold() const { return {threshold_}; }
    /// g with g d^(2/3) (largest eigenvalue of Z Z^T - edge) -> Tracy-Widom 1; d is the number of columns.
    [[nodiscard]] double tracy_widom_scale() const { return tracy_widom_scale_; }
    /// The parameter t* of the edge.
    [[nodiscard]] double edge_parameter() const { return edge_.t; }
    /// z''(t*), the curvature that determines the square-root density and the Tracy-Widom scale.
    [[nodiscard]] double edge_curvature() const;

    /// An atom of small weight far above the others gives single eigenvalues of pure noise outside the bulk. The edge
    /// above is then the edge of their separate cluster, and Tracy-Widom does not describe it. Up to 3 atoms per side,
    /// of total weight at most `few` (a few eigenvalues of the matrix size; the default is 3 of 128), are called
    /// detached when they lie beyond the edge of the law without them. Cost: up to 16 edge solves.
    [[nodiscard]] EdgeRegularity edge_regularity(double few = 3.0 / 128.0) const;

    /// The outlier above the top edge; all_outliers also has those in gaps. Throws usage_error on a strength that is
    /// negative, 1e70 thresholds or more, or not a number.
    [[nodiscard]] SpikePrediction spike(SignalStrength strength) const;

    /// Throws usage_error at or below the detection threshold, and when spike throws.
    [[nodiscard]] SpikeCurve spike_curve(SignalStrength strength) const;

    /// The strength whose outlier this eigenvalue is; at the edge, the threshold. Conditioned like a square root near
    /// the edge. This and the functions below throw usage_error below the edge and for values that are not finite.
    [[nodiscard]] SignalStrength strength_of(Eigenvalue outlier) const;

    /// Stieltjes transforms, int 1/(x - z), of Z Z^T (mass over n eigenvalues) and of Z^T Z (over d).
    [[nodiscard]] double stieltjes_left(Eigenvalue z) const;
    [[nodiscard]] double stieltjes_right(Eigenvalue z) const;
    /// T(z) = z m_left m_right; a spike of strength T(z)^(-1/2) has its outlier at z.
    [[nodiscard]] double d_transform(Eigenvalue z) const;
    /// T'(z); minus infinity at the edge.
    [[nodiscard]] double d_transform_derivative(Eigenvalue z) const;

private:
    /// The solution of the implicit equation of a side for one target.
    struct SidePoint {
        double s = 0.0;                 ///< the unknown; 0 when it is not solved yet
        double transform = 0.0;         ///< g, minus the weighted Stieltjes transform of the other side
        double elasticity = 0.0;        ///< E = dlog g / dlog target
        double elasticity_slope = 0.0;  ///< dE / dlog target
    };

    /// All quantities on the curve at one t.
    struct CurvePoint {
        double t = 0.0;
        double z = 0.0;
        double fall = 0.0;        ///< F = -dlog z / dlog t; 0 at the edge
        double fall_slope = 0.0;  ///< dF / dlog t
        SidePoint row;
        SidePoint column;
    };

    [[nodiscard]] static SidePoint solve(const RelativeAtoms& side, double target, double start);
    /// `near`, another point of the curve, serves as a starting point and does not change the result.
    [[nodiscard]] CurvePoint at(double t, const CurvePoint& near) const;
    void require_strength(double strength) const;
    [[nodiscard]] CurvePoint point_with_strength(double strength) const;
    [[nodiscard]] CurvePoint point_with_eigenvalue(Eigenvalue z) const;
    [[nodiscard]] double d_transform_at(const CurvePoint& point) const;
    /// h = dlog((1 + t)(1 + t / beta)) / dlog t.
    [[nodiscard]] double rise(double t) const;

    Spectrum row_spectrum_;
    Spectrum column_spectrum_;
    AspectRatio aspect_;
    RelativeAtoms row_;
    RelativeAtoms column_;
    CurvePoint edge_;
    double threshold_ = 0.0;
    double tracy_widom_scale_ = 0.0;
};

}  // namespace spiked::theory
