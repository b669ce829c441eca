#pragma once
#include <cstddef>
#include <span>

#include "estimators/spectral/shrinkage.hpp"

namespace spiked::estimators {

/// What stands in for the K largest singular values: imputed from a square-root edge, the largest one left, or 0.
enum class ScreeNotFill { impute, winsorize, zero };

/// The threshold of ScreeNOT (Donoho, Gavish and Romanov 2023), singular-value scale: optimal truncation under noise of
/// any bulk, `bound` an upper bound of the rank (K). The zero of y D'(y)/D(y) + 4 above the filled spectrum, solved in
/// relative units to rounding: scale free. A bound that leaves the fill no room (2 K + 1 > p, or K >= p) is lowered;
/// 2 K + 1 = p is legal. 0 when no noise is left. Cost O(p), about 8 passes.
[[nodiscard]] double screenot_threshold(std::span<const double> singular_values, Shape shape, std::size_t bound,
                                        ScreeNotFill fill = ScreeNotFill::impute);

/// Keeps values above the threshold as they are. A note when the bound was lowered, and when more components than the
/// bound stand out: then signals pass for noise and the threshold is too high.
[[nodiscard]] Shrinkage screenot(std::span<const double> singular_values, Shape shape, std::size_t bound,
                                 ScreeNotFill fill = ScreeNotFill::impute);

}  // namespace spiked::estimators
