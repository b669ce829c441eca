#pragma once
#include <cstddef>
#include <span>

#include "estimators/spectral/shrinkage.hpp"

namespace spiked::estimators {

/// The replacement of the K largest singular values: imputed from a square-root edge, the largest remaining one, or 0.
enum class ScreeNotFill { impute, winsorize, zero };

/// The threshold of ScreeNOT (Donoho, Gavish and Romanov 2023) on the singular-value scale: optimal truncation under
/// noise with any bulk, where `bound` is an upper bound of the rank (K). It is the zero of y D'(y)/D(y) + 4 above the
/// filled spectrum, solved relative to the largest value to rounding accuracy, and therefore independent of scale. A
/// bound that leaves too few values for the fill (2 K + 1 > p, or K >= p) is lowered; 2 K + 1 = p is allowed. The
/// threshold is 0 when no noise is left. Cost O(p), about 8 passes.
[[nodiscard]] double screenot_threshold(std::span<const double> singular_values, Shape shape, std::size_t bound,
                                        ScreeNotFill fill = ScreeNotFill::impute);

/// Keeps values above the threshold unchanged. Gives a note when the bound was lowered, and when more components than
/// the bound stand out: signals are then treated as noise and the threshold is too high.
[[nodiscard]] Shrinkage screenot(std::span<const double> singular_values, Shape shape, std::size_t bound,
                                 ScreeNotFill fill = ScreeNotFill::impute);

}  // namespace spiked::estimators
