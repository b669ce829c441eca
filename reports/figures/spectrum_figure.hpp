#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reports/figures/figures.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::reports {

/// The spectrum of one block: singular values by index, and a histogram of eigenvalues (their squares). The histogram
/// shows the edge estimated by a method (an eigenvalue), and the density of a noise law fitted to `noise`, the
/// eigenvalues that the method attributes to noise, unless it is empty (theory/laws/fitted_noise.hpp). `long_side` is
/// the larger size of the block. `singular` has at least one value. Draw the result with draw or write_picture.
[[nodiscard]] Figure spectrum_figure(const std::string& title, std::vector<double> singular,
                                     std::optional<Eigenvalue> bulk_edge, std::size_t long_side,
                                     std::vector<double> noise = {});

}  // namespace spiked::reports
