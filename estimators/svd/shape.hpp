#pragma once
#include <algorithm>
#include <cstddef>

namespace spiked::estimators {

/// Rows and columns of a block. p = the short side, q = the long side; left vectors have length `rows`.
struct Shape {
    std::size_t rows = 0;
    std::size_t columns = 0;

    [[nodiscard]] constexpr std::size_t short_side() const { return std::min(rows, columns); }
    [[nodiscard]] constexpr std::size_t long_side() const { return std::max(rows, columns); }
};

}  // namespace spiked::estimators
