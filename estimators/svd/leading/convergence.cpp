#include "estimators/svd/leading/convergence.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::estimators {

void ConvergenceForecast::add(std::size_t dimension, double excess) {
    logarithms_.emplace_back(static_cast<double>(dimension), std::log(std::max(excess, 1e-300)));
}

bool ConvergenceForecast::too_late() const {
    constexpr double first = 1.0 / 12.0;  // of the short side
    constexpr double window = 0.7;        // of the dimension: where the rate is measured from
    constexpr double acceleration = 2.0;
    const auto side = static_cast<double>(short_side_);
    if (logarithms_.size() < 2 || logarithms_.back().first < first * side) return false;
    const auto [dimension, excess] = logarithms_.back();
    if (excess <= 0.0) return false;
    auto before = logarithms_.end() - 2;
    while (before != logarithms_.begin() && before->first > window * dimension) --before;
    const double rate = (before->second - excess) / (dimension - before->first);
    return !(rate > 0.0) || dimension + excess / (acceleration * rate) > static_cast<double>(most_dimension());
}

}  // namespace spiked::estimators
