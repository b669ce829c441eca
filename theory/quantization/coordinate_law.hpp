#pragma once
#include <cstddef>

#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::theory {

/// The law of a coordinate, at unit variance, for which a quantizer is designed: N(0, 1), or the law of sqrt(d) times a
/// coordinate of a uniform point of the sphere in d dimensions, which is the law of every coordinate of a Haar-rotated
/// row (for d = 1, a sign). It is in closed form by the incomplete beta function. Accuracy: 1e-14.
class CoordinateLaw {
public:
    CoordinateLaw(theory::CodebookLaw law, std::size_t dimension);

    /// P(z > x), x >= 0, without cancellation.
    [[nodiscard]] double tail(double x) const;
    /// E[z; z > x], x >= 0.
    [[nodiscard]] double tail_mean(double x) const;
    /// The x with P(z <= x) = p, 0 < p < 1.
    [[nodiscard]] double quantile(double p) const;

private:
    bool normal_;
    double d_;
};

}  // namespace spiked::theory
