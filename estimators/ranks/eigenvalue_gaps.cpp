#include "estimators/ranks/eigenvalue_gaps.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "theory/laws/finite_size.hpp"
#include "theory/laws/line_fit.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t points = 5;
constexpr int rounds = 5;

/// |slope| of the least-squares line through eigenvalues first .. first + 4 (counted from 0) over their positions to
/// the power 2/3.
double slope_behind(std::span<const double> eigenvalues, std::size_t first) {
    std::array<double, points> position{};
    for (std::size_t i = 0; i < points; ++i) position[i] = std::pow(static_cast<double>(first + i), 2.0 / 3.0);
    return std::abs(theory::fit_line(position, eigenvalues.subspan(first, points)).slope);
}

}  // namespace

std::size_t eigenvalue_gap_rank(std::span<const double> eigenvalues, std::optional<std::size_t> cap) {
    const std::size_t p = eigenvalues.size();
    if (p <= points) return 0;
    const std::size_t most = std::min(cap.value_or(2 * theory::pilot_count(p)), p - points);
    std::size_t rank = most;
    for (int round = 0; round < rounds; ++round) {
        const double least = 2.0 * slope_behind(eigenvalues, rank);
        std::size_t found = most;
        while (found > 0) {
            const double gap = eigenvalues[found - 1] - eigenvalues[found];
            if (gap > 0.0 && gap >= least) break;
            --found;
        }
        if (found == rank) break;
        rank = found;
    }
    return rank;
}

}  // namespace spiked::estimators
