#include "validation/statistics/power_law.hpp"

#include <cmath>
#include <vector>

#include "theory/laws/line_fit.hpp"

namespace spiked::validation {

PowerLaw fit_power_law(std::span<const MeasuredPoint> points) {
    std::vector<double> x, y, weights;
    for (const MeasuredPoint& point : points) {
        if (!(point.x > 0.0 && point.error > 0.0 && point.y > least_standard_errors * point.error)) continue;
        x.push_back(std::log(point.x));
        y.push_back(std::log(point.y));
        weights.push_back((point.y / point.error) * (point.y / point.error));
    }
    const theory::LineFit line = theory::fit_line(x, y, weights);
    if (x.size() < 3 || !(line.x_squares > 0.0)) return {.points = x.size()};
    PowerLaw law{.exponent = line.slope,
                 .error = 1.0 / std::sqrt(line.x_squares),
                 .center_x = line.x_mean,
                 .center_y = line.y_mean,
                 .chi_square = 0.0,
                 .points = x.size()};
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double off = y[i] - law.center_y - law.exponent * (x[i] - law.center_x);
        law.chi_square += weights[i] * off * off;
    }
    return law;
}

}  // namespace spiked::validation
