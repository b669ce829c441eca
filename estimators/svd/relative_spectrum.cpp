#include "estimators/svd/relative_spectrum.hpp"

#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::estimators {

RelativeSpectrum::RelativeSpectrum(std::span<const double> singular_values, Shape block) : shape(block) {
    if (singular_values.size() != shape.short_side())
        throw precondition_error("{} singular values of a {} x {} block", singular_values.size(), shape.rows,
                                 shape.columns);
    for (std::size_t i = 0; i < singular_values.size(); ++i) {
        if (!(singular_values[i] >= 0.0 && std::isfinite(singular_values[i])))
            throw input_error(
                "singular value {} of {} is {} (the numbers are too large to be multiplied): divide the block by its "
                "largest entry",
                i + 1, singular_values.size(), singular_values[i]);
        if (i > 0 && singular_values[i] > singular_values[i - 1])
            throw precondition_error("singular value {} is larger than the one before it", i + 1);
    }
    if (singular_values.empty() || singular_values[0] == 0.0) return;
    unit = singular_values[0];
    observed.assign(singular_values.begin(), singular_values.end());
    for (const double value : singular_values) {
        values.push_back(relative_value(value, unit, shape.long_side()));
        eigenvalues.push_back(values.back() * values.back());
        if (values.back() > 0.0) ++above_rounding;
    }
}

std::optional<Eigenvalue> RelativeSpectrum::eigenvalue(double relative) const {
    const double value = relative * unit * unit;
    if (!std::isfinite(value) || (value == 0.0 && relative > 0.0)) return std::nullopt;
    return Eigenvalue{value};
}

}  // namespace spiked::estimators
