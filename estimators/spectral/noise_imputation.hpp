#pragma once
#include <cmath>
#include <cstddef>
#include <span>

#include "core/device/host_device.hpp"
#include "theory/laws/edge_extrapolation.hpp"

namespace spiked::estimators {

/// Replaces the k largest of descending values by those that a square-root edge predicts: with values x counted from 1,
/// value l becomes x_(k+1) + (1 - ((l - 1 + shift) / k)^(2/3)) / (2^(2/3) - 1) (x_(k+1) - x_(2k+1)). Needs at least 2k
/// + 1 values; k = 0 changes nothing. The caller chooses the scale, singular values or eigenvalues. Source: ScreeNOT
/// (Donoho, Gavish and Romanov); eOptShrink Step 2 with shift 1.
SPIKED_DEVICE inline void impute_top(std::span<double> values, std::size_t k, double shift) {
    if (k == 0) return;
    const double anchor = values[k];
    const double reach = (values[k] - values[2 * k]) * theory::edge_extrapolation;
    for (std::size_t l = 0; l < k; ++l) {
        const double place = (static_cast<double>(l) + shift) / static_cast<double>(k);
        values[l] = anchor + (1.0 - std::pow(place, 2.0 / 3.0)) * reach;
    }
}

}  // namespace spiked::estimators
