#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "theory/laws/quantities.hpp"
#include "theory/laws/shrinkers.hpp"
#include "theory/laws/spectrum.hpp"

namespace spiked::theory {

/// What the law says about one spike.
struct SpikePrediction {
    SignalStrength strength;
    bool detectable = false;              ///< strength above the detection threshold
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

/// Whether the top of the spectrum is a bulk edge or the blob of a few detached eigenvalues.
struct EdgeRegularity {
    bool regular = true;
    std::string note;  ///< empty when regular; otherwise names the atoms that detach and what no longer applies
};

/// The curve z(t) at one spike to third order, F = -dlog z / dlog t: what fluctuations are made of. One minus F is
/// given by itself, because it is small for strong spikes.
struct SpikeCurve {
    double t = 0.0;
    double z = 0.0;                 ///< the outlier
    double fall = 0.0;              ///< F
    double one_minus_fall = 0.0;    ///< 1 - F
    double slope = 0.0;             ///< -dF / dlog t, positive
    double slope_derivative = 0.0;  ///< of `slope`, in log t
};

/// The limiting law of Z = A^{1/2} X B^{1/2}, X of n x d with independent entries of variance 1/d, and of S + Z for a
/// low-rank S in general position. A (`row`, n x n) and B (`column`, d x d) enter through their spectra, n/d through
/// `aspect`. Edges and outliers are eigenvalues of Z Z^T (squared singular values); strengths are singular values.
///
/// Source: research note theory.md 1.2. The self-consistent equations (1.1; m_1c and m_2c of Ding and Yang 2021) are
/// solved along a curve with one parameter t > 0 on which every quantity is elementary; for real arguments at or
/// above the edge nothing is iterated in two dimensions and nothing can diverge.
/// Accuracy: about 1e-14 relative for well-separated spikes, conditioned like strength / (strength - threshold) near
/// the threshold. Any aspect from 0.01 to 100 and beyond, any number of atoms, zeros included.
/// Cost: about 15 passes over the atoms of both sides to construct, and as many for each query.
/// Immutable once built: safe to share between threads.
class SeparableLaw {
public:
    /// Throws usage_error when the edge leaves the range in which a double has its digits, 1e-280 to 1e280.
    SeparableLaw(Spectrum row, Spectrum column, AspectRatio aspect);

    [[nodiscard]] const Spectrum& row() const { return row_spectrum_; }
    [[nodiscard]] const Spectrum& column() const { return column_spectrum_; }
    [[nodiscard]] AspectRatio aspect() const { return aspect_; }

    /// Right end of the support of Z Z^T.
    [[nodiscard]] Eigenvalue bulk_edge() const { return {edge_.z}; }
    /// The smallest strength whose outlier leaves the bulk.
    [[nodiscard]] SignalStrength detection_threshold() const { return {threshold_}; }
    /// g with g d^(2/3) (largest eigenvalue of Z Z^T - edge) -> Tracy-Widom 1; d is the number of columns.
    [[nodiscard]] double tracy_widom_scale() const { return tracy_widom_scale_; }
    /// The parameter t* of the edge.
    [[nodiscard]] double edge_parameter() const { return edge_.t; }
    /// z''(t*): the curvature that sets both the square-root density and the Tracy-Widom scale.
    [[nodiscard]] double edge_curvature() const;

    /// An atom of small weight far above the others gives single eigenvalues of pure noise outside the bulk; then the
    /// edge above is that of their blob and Tracy-Widom does not describe it. Up to 3 atoms a side, of total weight
    /// at most `few` (a few eigenvalues out of the matrix size: the default is 3 of 128), are called detached when
    /// they lie beyond the edge of the law without them. Cost: up to 16 edge solves.
    [[nodiscard]] EdgeRegularity edge_regularity(double few = 3.0 / 128.0) const;

    /// Throws usage_error on a strength that is negative, 1e70 thresholds or more, or not a number.
    [[nodiscard]] SpikePrediction spike(SignalStrength strength) const;

    /// Throws usage_error at or below the detection threshold, and like spike.
    [[nodiscard]] SpikeCurve spike_curve(SignalStrength strength) const;

    /// The strength whose outlier lies there; the threshold at the edge. Conditioned like a square root near the
    /// edge. This and the functions below throw usage_error below the edge and on values that are not finite.
    [[nodiscard]] SignalStrength strength_of(Eigenvalue outlier) const;

    /// Stieltjes transforms, int 1/(x - z), of Z Z^T (mass over n eigenvalues) and of Z^T Z (over d).
    [[nodiscard]] double stieltjes_left(Eigenvalue z) const;
    [[nodiscard]] double stieltjes_right(Eigenvalue z) const;
    /// T(z) = z m_left m_right; a spike of strength T(z)^(-1/2) has its outlier at z.
    [[nodiscard]] double d_transform(Eigenvalue z) const;
    /// T'(z); minus infinity at the edge.
    [[nodiscard]] double d_transform_derivative(Eigenvalue z) const;

private:
    /// One covariance, its values divided by the largest.
    struct Side {
        std::vector<double> relative;
        std::vector<double> weight;
        double largest = 0.0;

        explicit Side(const Spectrum& spectrum);
    };

    /// The implicit equation of a side solved at one target.
    struct SidePoint {
        double s = 0.0;                 ///< its unknown; 0: not solved yet
        double transform = 0.0;         ///< g, minus the weighted Stieltjes transform of the other side
        double elasticity = 0.0;        ///< E = dlog g / dlog target
        double elasticity_slope = 0.0;  ///< dE / dlog target
    };

    /// Everything on the curve at one t.
    struct CurvePoint {
        double t = 0.0;
        double z = 0.0;
        double fall = 0.0;        ///< F = -dlog z / dlog t; 0 at the edge
        double fall_slope = 0.0;  ///< dF / dlog t
        SidePoint row;
        SidePoint column;
    };

    [[nodiscard]] static SidePoint solve(const Side& side, double target, double start);
    /// `near`, a point of the curve, only saves work.
    [[nodiscard]] CurvePoint at(double t, const CurvePoint& near) const;
    void require_strength(double strength) const;
    [[nodiscard]] CurvePoint point_with_strength(double strength) const;
    [[nodiscard]] CurvePoint point_with_eigenvalue(Eigenvalue z) const;
    [[nodiscard]] double d_transform_at(const CurvePoint& point) const;
    /// h = dlog((1 + t)(1 + t / beta)) / dlog t
    [[nodiscard]] double rise(double t) const;

    Spectrum row_spectrum_;
    Spectrum column_spectrum_;
    AspectRatio aspect_;
    Side row_;
    Side column_;
    CurvePoint edge_;
    double threshold_ = 0.0;
    double tracy_widom_scale_ = 0.0;
};

}  // namespace spiked::theory
