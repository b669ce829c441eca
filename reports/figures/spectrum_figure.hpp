#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reports/figures/figures.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::reports {

/// The spectrum of one block: singular values by their index, and a histogram of eigenvalues (their squares) with the
/// edge that a method estimated (an eigenvalue) and the density of a law of noise fitted to the eigenvalues that it
/// takes for noise (none: left out), see theory/laws/fitted_noise.hpp. `long_side`: the larger size of the block. Not
/// drawn yet: see draw and write_picture. `singular` has at least one value.
[[nodiscard]] Figure spectrum_figure(const std::string& title, std::vector<double> singular,
                                     std::optional<Eigenvalue> bulk_edge, std::size_t long_side,
                                     std::vector<double> noise = {});

}  // namespace spiked::reports
