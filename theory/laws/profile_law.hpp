#pragma once
#include <complex>
#include <cstddef>
#include <vector>

#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/quantities.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::theory {

/// Variances of independent noise entries, by classes of rows and columns. One class for each row and each column
/// describes any profile; few classes describe a block profile.
struct VarianceProfile {
    std::size_t rows = 0;                ///< classes of rows
    std::size_t columns = 0;             ///< classes of columns
    std::vector<double> variances;       ///< row by row: of class a and class b at a * columns + b
    std::vector<double> row_weights;     ///< the fraction of the rows in each class; empty: equal
    std::vector<double> column_weights;  ///< the same for the columns
};

/// Where a spike lies: the sum of the squared entries of its unit vectors over each class. Empty: spread evenly, as a
/// vector is that is independent of the profile.
struct SpikeDirection {
    std::vector<double> left;
    std::vector<double> right;
};

/// The limiting law of an n x d matrix Z with independent entries of mean 0 and variance S_ij / d, for any S, and of
/// one spike in it. S of rank one is the diagonal case of SeparableLaw. Edges and outliers are eigenvalues of Z Z^T,
/// strengths are singular values.
///
/// The diagonals m_i of (Z Z^T - z)^(-1) and r_j of (Z^T Z - z)^(-1) have the limits that solve the quadratic vector
/// equation -1/m_i = z (1 + (1/d) sum_j S_ij r_j), -1/r_j = z (1 + (1/d) sum_i S_ij m_i). A spike with unit vectors u,
/// v and strength c has its outlier where T(z) = z L(z) R(z) = 1/c^2 with L = sum u_i^2 m_i and R = sum v_j^2 r_j, and
/// squared overlaps L / (c^2 T') and R / (c^2 T') there: the resolvent is close to diagonal between fixed vectors. For
/// several spikes this holds one by one if sum u_i u'_i m_i vanishes between them, as it does for random directions.
/// Where all rows and all columns of S have mean 1, the solution is that of white noise, edge included.
///
/// Source: Girko 2001; Hachem, Loubaton and Najim 2007 (deterministic equivalents); Ajanki, Erdos and Kruger 2019 (the
/// equation, square-root edges); Alt, Erdos and Kruger 2017 (resolvents of Gram matrices between fixed vectors). Above
/// the edge the equation is solved by Newton's method from m = r = -1/z, which rises to the smallest solution without
/// a guess; its matrix is 1 minus a symmetric matrix of norm below 1, and the edge is where that norm reaches 1.
/// Accuracy, relative: edge 1e-13; outliers and overlaps 1e-12, conditioned like strength / (strength - threshold);
/// threshold 1e-9 and Tracy-Widom scale 1e-8, by extrapolation to the edge; density 1e-10 inside the bulk. All are
/// worse where a small cluster lies just below the edge. Cost: 10 to 200 products of S with a vector for a point above
/// the edge, 100 points to construct (0.2 s for 128 x 128 classes, 2 s for 512 x 512), 100 to 1000 complex products for
/// a point in the bulk. Objects are immutable and can be shared between threads.
class ProfileLaw {
public:
    /// Throws usage_error for sizes that do not fit, variances that are negative or not finite or all zero, and weights
    /// that are not positive or do not sum to 1 within 1e-9.
    ProfileLaw(VarianceProfile profile, AspectRatio aspect);

    [[nodiscard]] Eigenvalue bulk_edge() const { return {edge_ * unit_}; }
    /// The smallest strength with an outlier above the top edge; it depends on where the spike lies.
    [[nodiscard]] SignalStrength detection_threshold(const SpikeDirection& direction = {}) const;
    /// g with g d^(2/3) (largest eigenvalue of Z Z^T - edge) -> Tracy-Widom 1; d is the number of columns.
    [[nodiscard]] double tracy_widom_scale() const;

    /// The outlier above the top edge. Throws usage_error on a strength that is negative, not finite, or 1e6 thresholds
    /// or more, and on a direction that is negative, does not sum to 1 or has another number of classes.
    [[nodiscard]] SpikePrediction spike(SignalStrength strength, const SpikeDirection& direction = {}) const;
    /// The strength whose outlier this eigenvalue is. Throws usage_error below the edge, beyond 1e12 edges, and for the
    /// directions above.
    [[nodiscard]] SignalStrength strength_of(Eigenvalue outlier, const SpikeDirection& direction = {}) const;

    /// Density of the eigenvalues of Z Z^T at x > 0; an atom at zero is left out.
    [[nodiscard]] double density(Eigenvalue x) const;
    /// Throws usage_error unless Im z > 0.
    [[nodiscard]] StieltjesPair stieltjes(std::complex<double> z) const;

private:
    friend class ProfileGaps;

    /// A solution in the unknowns X_a = r_a p_a and Y_b = c_b q_b, where p = -z m and q = -z r, and r_a^2 and c_b^2 are
    /// n/d times the weight of a row class and the weight of a column class. In these the equation is symmetric.
    template <class T>
    struct Solution {
        std::vector<T> left;
        std::vector<T> right;
    };
    using Complex = std::complex<double>;

    /// A point above the edge with its derivative in z.
    struct Point {
        double z = 0.0;
        Solution<double> at;
        Solution<double> slope;
        double fall = 0.0;  ///< -dlog z / dlog t, t = the mean of q less 1; 0 at the edge
    };
    /// The averages of p and q that a spike sees, and their derivatives in z.
    struct Seen {
        double left = 0.0;
        double right = 0.0;
        double left_slope = 0.0;
        double right_slope = 0.0;
    };

    template <class T>
    [[nodiscard]] std::vector<T> rows_times(const std::vector<T>& right) const;
    template <class T>
    [[nodiscard]] std::vector<T> columns_times(const std::vector<T>& left) const;
    template <class T>
    [[nodiscard]] bool linear(const Solution<T>& scale, T z, const Solution<T>& target, Solution<T>& found) const;
    template <class T>
    [[nodiscard]] bool newton(T z, Solution<T>& at) const;
    [[nodiscard]] Solution<double> start() const { return {row_root_, column_root_}; }
    [[nodiscard]] bool solve(double z, Point& point) const;
    [[nodiscard]] Solution<Complex> solve(Complex z) const;
    [[nodiscard]] Point above(double s) const;
    [[nodiscard]] double find_edge() const;
    void sample_edge();
    template <class Function>
    [[nodiscard]] double at_edge(Function f, std::size_t points) const;
    [[nodiscard]] SpikeDirection checked(const SpikeDirection& direction) const;
    [[nodiscard]] Seen seen(const Point& point, const SpikeDirection& direction) const;
    [[nodiscard]] SpikePrediction prediction(SignalStrength strength, double z, const Seen& at) const;
    [[nodiscard]] double threshold(const SpikeDirection& direction) const;

    std::size_t rows_;
    std::size_t columns_;
    std::vector<double> symmetric_;  ///< r_a S_ab c_b, divided by the largest variance
    std::vector<double> row_root_;
    std::vector<double> column_root_;
    double beta_;
    double unit_;  ///< the largest variance; eigenvalues are stored divided by it
    double edge_ = 0.0;
    std::vector<Point> near_edge_;  ///< above(j h), j = 1, 2, ..: every quantity is smooth in this argument
};

template <class T>
std::vector<T> ProfileLaw::rows_times(const std::vector<T>& right) const {
    std::vector<T> result(rows_);
    for (std::size_t a = 0; a < rows_; ++a) {
        const double* row = symmetric_.data() + a * columns_;
        T sum[4] = {};  // partial sums are faster
        std::size_t b = 0;
        for (; b + 4 <= columns_; b += 4)
            for (std::size_t lane = 0; lane < 4; ++lane) sum[lane] += row[b + lane] * right[b + lane];
        for (; b < columns_; ++b) sum[0] += row[b] * right[b];
        result[a] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    return result;
}

template <class T>
std::vector<T> ProfileLaw::columns_times(const std::vector<T>& left) const {
    std::vector<T> result(columns_);
    for (std::size_t a = 0; a < rows_; ++a) {
        const double* row = symmetric_.data() + a * columns_;
        for (std::size_t b = 0; b < columns_; ++b) result[b] += row[b] * left[a];
    }
    return result;
}

}  // namespace spiked::theory
