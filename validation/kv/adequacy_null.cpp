#include "validation/kv/adequacy_null.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::validation {

void correlate_rows(arma::mat& rows, double correlation) {
    const double fresh = std::sqrt(1.0 - correlation * correlation);
    for (arma::uword j = 0; j < rows.n_cols; ++j)
        for (arma::uword t = 1; t < rows.n_rows; ++t) rows(t, j) = correlation * rows(t - 1, j) + fresh * rows(t, j);
}

double row_moment(double correlation) {
    const double square = correlation * correlation;
    return (1.0 + square) / (1.0 - square);
}

ResidualLaw::ResidualLaw(const std::vector<const arma::mat*>& residuals) {
    const arma::uword d = residuals.front()->n_cols;
    arma::mat covariance(d, d, arma::fill::zeros);
    double lagged = 0.0;
    double plain = 0.0;
    double rows = 0.0;
    for (const arma::mat* residual : residuals) {
        const arma::mat& r = *residual;
        covariance += r.t() * r;
        const auto later = r.tail_rows(r.n_rows - 1);
        const auto earlier = r.head_rows(r.n_rows - 1);
        lagged += arma::accu(later % earlier);
        plain += 0.5 * (arma::accu(arma::square(later)) + arma::accu(arma::square(earlier)));
        rows += static_cast<double>(r.n_rows);
    }
    covariance /= rows;
    correlation = std::clamp(lagged / plain, -0.95, 0.95);
    // Shrinking the off-diagonal entries gives a convex combination of the covariance and its diagonal, hence again a
    // covariance.
    const arma::vec diagonal = covariance.diag();
    variances = diagonal.t();
    const double squares = arma::accu(arma::square(diagonal));
    const double beside = arma::accu(arma::square(covariance)) - squares;
    const double by_chance = row_moment(correlation) / rows * (std::pow(arma::accu(diagonal), 2) - squares);
    covariance *= beside > by_chance ? std::sqrt(1.0 - by_chance / beside) : 0.0;
    covariance.diag() = diagonal;
    unevenness = diagonal.max() / arma::mean(diagonal);

    arma::vec values;
    arma::mat basis;
    if (!arma::eig_sym(values, basis, covariance))
        throw input_error(
            "the covariance of {} channels could not be decomposed (LAPACK did not converge): leave this head out", d);
    root = basis * arma::diagmat(arma::sqrt(arma::clamp(values, 0.0, arma::datum::inf))) * basis.t();
}

arma::mat ResidualLaw::draw(arma::mat gaussian) const {
    correlate_rows(gaussian, correlation);
    return gaussian * root;
}

void ResidualLaw::restore(const arma::rowvec& kept) {
    for (arma::uword j = 0; j < kept.n_elem; ++j)
        if (kept(j) > 0.0) root.col(j) *= std::sqrt(variances(j) / kept(j));
}

arma::rowvec regular_deviations(const std::vector<double>& eigenvalues, std::size_t rows, std::size_t columns,
                                double correlation) {
    const double n = static_cast<double>(rows);
    const double d = static_cast<double>(columns);
    double first = 0.0;
    double second = 0.0;
    for (const double value : eigenvalues) {
        first += value / n;
        second += value * value / n;
    }
    // The eigenvalues of Z Z^T have m2 / m1^2 = mean(a^2) / mean(a)^2 + (n/d) mean(b^2) / mean(b)^2.
    const double wanted = (second / (first * first) - row_moment(correlation)) * d / n;
    const auto ratio = [](double c) { return c < 1e-6 ? 1.0 : 0.5 * c / std::tanh(0.5 * c); };
    double low = 0.0;
    double high = 8.0;
    for (int step = 0; step < 60; ++step) {
        const double middle = 0.5 * (low + high);
        (ratio(middle) < wanted ? low : high) = middle;
    }
    arma::rowvec variances(columns);
    for (arma::uword j = 0; j < variances.n_elem; ++j)
        variances(j) = std::exp(-low * (static_cast<double>(j) + 0.5) / d);
    variances *= first / arma::accu(variances);
    return arma::sqrt(variances);
}

}  // namespace spiked::validation
