#include "estimators/noise_imputation.hpp"

#include <cmath>

#include "theory/finite_size.hpp"

namespace spiked::estimators {

std::vector<double> impute_top(std::span<const double> values, std::size_t k, double shift) {
    std::vector<double> filled(values.begin(), values.end());
    if (k == 0) return filled;
    const double anchor = values[k];
    const double reach = (values[k] - values[2 * k]) * theory::edge_extrapolation;
    for (std::size_t l = 0; l < k; ++l) {
        const double place = (static_cast<double>(l) + shift) / static_cast<double>(k);
        filled[l] = anchor + (1.0 - std::pow(place, 2.0 / 3.0)) * reach;
    }
    return filled;
}

}  // namespace spiked::estimators
