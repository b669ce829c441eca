#include "theory/laws/line_fit.hpp"

#include <algorithm>
#include <functional>

#include "core/runtime/error.hpp"

namespace spiked::theory {

LineFit fit_line(std::span<const double> x, std::span<const double> y, std::span<const double> weights) {
    if (x.size() != y.size() || (!weights.empty() && weights.size() != x.size()))
        throw precondition_error("a line is fitted to {} x and {} y with {} weights", x.size(), y.size(),
                                 weights.size());
    const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
    double total = 0.0;
    double x_sum = 0.0;
    double y_sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        total += weight(i);
        x_sum += weight(i) * x[i];
        y_sum += weight(i) * y[i];
    }
    LineFit line;
    line.x_mean = x_sum / total;
    line.y_mean = y_sum / total;
    // The mean of equal numbers is rounded, so that their distances to it need not be 0.
    if (std::adjacent_find(x.begin(), x.end(), std::not_equal_to<>()) == x.end()) return line;
    double xy = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double from_mean = x[i] - line.x_mean;
        line.x_squares += weight(i) * from_mean * from_mean;
        xy += weight(i) * from_mean * (y[i] - line.y_mean);
    }
    line.slope = xy / line.x_squares;
    return line;
}

}  // namespace spiked::theory
