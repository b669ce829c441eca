#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reports/figures.hpp"
#include "theory/base/quantities.hpp"

namespace spiked::reports {

/// The spectrum of one block: singular values by their index, and a histogram of eigenvalues (their squares) with the
/// edge that a method estimated (an eigenvalue) and the law it fitted to the noise (eigenvalues, scaled to the count
/// within the edge; none: left out). Not drawn yet: see draw and write_picture. `singular` has at least one value.
[[nodiscard]] Figure spectrum_figure(const std::string& title, std::vector<double> singular,
                                     std::optional<Eigenvalue> bulk_edge, std::vector<double> noise = {});

}  // namespace spiked::reports
