#include "estimators/ranks/deterministic_parallel_analysis.hpp"

#include <cmath>
#include <span>
#include <vector>

#include "core/runtime/memo.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "theory/laws/separable_law.hpp"
#include "theory/laws/tracy_widom.hpp"

namespace spiked::estimators {
namespace {

/// Mean squares of rows or columns over their mean, nearer to 1 by the part of their spread that squares of Gaussian
/// entries of equal variance have by chance; `others` are those of the other side.
arma::vec relative_variances(const arma::vec& squares, const arma::vec& others) {
    arma::vec relative = squares / arma::mean(squares) - 1.0;
    const double by_chance = 2.0 * arma::accu(arma::square(others)) / std::pow(arma::accu(others), 2);
    const double spread = arma::mean(arma::square(relative));
    if (!(spread > by_chance)) return arma::vec(squares.n_elem, arma::fill::ones);
    return 1.0 + relative * std::sqrt(1.0 - by_chance / spread);
}

theory::Spectrum spectrum_of(const arma::vec& variances) {
    return theory::Spectrum::of_values(std::span(variances.memptr(), variances.n_elem));
}

}  // namespace

double largest_of_noise(const arma::mat& residual, std::size_t rank, double level, NoiseVariances variances) {
    static Memo<double, double> quantiles;
    const double quantile = quantiles.of(level, [&] { return theory::tracy_widom_upper_quantile(level); });
    const arma::mat squares = arma::square(residual);
    const arma::vec of_rows = arma::mean(squares, 1);
    const arma::vec of_columns = arma::mean(squares, 0).t();
    const Shape left{residual.n_rows - rank, residual.n_cols - rank};
    const double mean = arma::accu(squares) / static_cast<double>(left.rows);
    const theory::SeparableLaw law(
        variances == NoiseVariances::both ? spectrum_of(relative_variances(of_rows, of_columns))
                                          : theory::identity_spectrum(),
        spectrum_of(mean * relative_variances(of_columns, of_rows)), AspectRatio::of(left.rows, left.columns));
    return law.bulk_edge().value +
           quantile * std::pow(static_cast<double>(left.columns), -2.0 / 3.0) / law.tracy_widom_scale();
}

std::size_t deflated_deterministic_rank(AnalysedBlock& block, double level, NoiseVariances variances) {
    const std::vector<double>& values = block.singular_values();
    const Shape shape = block.shape();
    std::size_t rank = 0;
    for (; rank < values.size() / 2; ++rank) {
        stop_point();
        if (relative_value(values[rank], values.front(), shape.long_side()) == 0.0) break;
        arma::mat residual = block.residual(std::span(values).first(rank)) / values[rank];
        if (residual.n_rows != shape.rows || residual.n_cols != shape.columns)
            residual = residual.submat(block.kept_rows(), block.kept_columns());
        if (!(1.0 > largest_of_noise(residual, rank, level, variances))) break;
    }
    return rank;
}

}  // namespace spiked::estimators
