#include "validation/kv/block_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "estimators/ranks/edge_fit.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/line_fit.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

using estimators::Shape;

BlockSpectrum analyse_spectrum(std::span<const double> values, Shape shape) {
    BlockSpectrum found;
    found.shrinkage = estimators::eoptshrink(values, shape, estimators::EOptShrinkOptions::edge_fit());
    for (std::size_t i = 0; i < values.size(); ++i) {
        found.eigenvalues.push_back(values[i] * values[i]);
        const double left = values[i] - (i < found.shrinkage.rank ? found.shrinkage.shrunk[i] : 0.0);
        found.residual.push_back(left * left);
    }
    std::sort(found.residual.begin(), found.residual.end(), std::greater<>());
    return found;
}

EdgeShape edge_shape_of(std::span<const double> eigenvalues, std::size_t rank) {
    const std::size_t window = std::min(2 * theory::pilot_count(eigenvalues.size()), eigenvalues.size() - rank);
    std::vector<double> edge_x, power_x, value, log_value;
    for (std::size_t j = 0; j < window; ++j) {
        edge_x.push_back(std::pow(static_cast<double>(j) + 0.5, 2.0 / 3.0));
        power_x.push_back(std::log(static_cast<double>(rank + j + 1)));
        value.push_back(eigenvalues[rank + j]);
        log_value.push_back(std::log(eigenvalues[rank + j]));
    }
    const theory::LineFit edge = theory::fit_line(edge_x, value);
    const theory::LineFit power = theory::fit_line(power_x, log_value);
    double edge_sum = 0.0;
    double power_sum = 0.0;
    for (std::size_t j = 0; j < window; ++j) {
        edge_sum += std::pow((edge.intercept() + edge.slope * edge_x[j]) / value[j] - 1.0, 2);
        power_sum += std::pow(std::exp(power.intercept() + power.slope * power_x[j]) / value[j] - 1.0, 2);
    }
    constexpr double rounding = 1e-24;
    return {std::log((edge_sum + rounding) / (power_sum + rounding)), -power.slope};
}

double peak_of(const arma::mat& rows) {
    double peak = 0.0;
    for (arma::uword t = 0; t < rows.n_rows; ++t) {
        const double norm = arma::norm(rows.row(t));
        if (norm > 0.0) peak = std::max(peak, arma::abs(rows.row(t)).max() / norm);
    }
    return peak;
}

std::size_t edge_vectors(Shape shape) {
    return static_cast<std::size_t>(std::sqrt(static_cast<double>(shape.short_side())));
}

double vector_peak(const arma::mat& left, const arma::mat& right, std::size_t first) {
    double peak = 0.0;
    for (const arma::mat* side : {&left, &right}) {
        const double size = static_cast<double>(side->n_rows);
        const double largest = arma::abs(side->tail_cols(side->n_cols - first)).max();
        peak = std::max(peak, size * largest * largest / std::log(size));
    }
    return peak;
}

DistanceFromOthers distance_from_others(const std::vector<double>& residual,
                                        const std::vector<const std::vector<double>*>& others) {
    double top = 0.0;
    std::vector<double> pooled;
    for (const auto* other : others) {
        top += other->front();
        pooled.insert(pooled.end(), other->begin(), other->end());
    }
    std::sort(pooled.begin(), pooled.end(), std::greater<>());
    top /= static_cast<double>(others.size());
    return {std::abs(std::log(residual.front() / top)), kolmogorov_distance(residual, pooled)};
}

}  // namespace spiked::validation
