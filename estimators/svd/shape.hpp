#pragma once
#include <algorithm>
#include <cstddef>

namespace spiked::estimators {

/// The numbers of rows and columns of a block; p is the short side and q the long side. Left vectors have length
/// `rows`.
struct Shape {
    std::size_t rows = 0;
    std::size_t columns = 0;

    [[nodiscard]] constexpr std::size_t short_side() const { return std::min(rows, columns); }
    [[nodiscard]] constexpr std::size_t long_side() const { return std::max(rows, columns); }
};

}  // namespace spiked::estimators
