#pragma once
#include <cmath>
#include <compare>
#include <cstddef>

#include "core/runtime/error.hpp"

namespace spiked {

/// Scales that published code has confused are distinct types here: an eigenvalue is the square of a singular value,
/// and there is no implicit conversion between them.
struct SingularValue {
    double value = 0.0;
    auto operator<=>(const SingularValue&) const = default;
};

struct Eigenvalue {
    double value = 0.0;
    auto operator<=>(const Eigenvalue&) const = default;
};

[[nodiscard]] inline SingularValue root(Eigenvalue e) { return {std::sqrt(e.value)}; }
[[nodiscard]] inline Eigenvalue squared(SingularValue s) { return {s.value * s.value}; }

/// A singular value of the clean signal, without noise.
struct SignalStrength {
    double value = 0.0;
    auto operator<=>(const SignalStrength&) const = default;
};

/// Squared inner product of a true and an observed singular vector, in [0, 1].
struct Overlap {
    double value = 0.0;
    auto operator<=>(const Overlap&) const = default;
};

/// Rows over columns, n/d, as a floating-point number; it is never computed by an integer division.
class AspectRatio {
public:
    explicit AspectRatio(double rows_over_columns) : value_(rows_over_columns) {
        if (!(value_ >= 1e-9 && value_ <= 1e9))
            throw usage_error(
                "aspect ratio {} is not usable (rows over columns, positive, from 1e-9 to 1e9): give n/d, for example "
                "0.5",
                rows_over_columns);
    }
    [[nodiscard]] static AspectRatio of(std::size_t rows, std::size_t columns) {
        return AspectRatio(static_cast<double>(rows) / static_cast<double>(columns));
    }
    [[nodiscard]] double value() const { return value_; }

private:
    double value_;
};

}  // namespace spiked
