#pragma once
#include <optional>

#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// The block with its outlying entries drawn in, for noise of heavy tails: the residual from a pilot estimate of the
/// signal is clipped at `limit` robust deviations (1.4826 times the median of its absolute values), divided by the
/// fraction of entries that are not clipped, and added to the pilot again. To first order the signal is kept, and the
/// noise is that of Huber's location estimate: its variance is E psi(Z)^2 / P(|Z| < c)^2, psi(x) = max(-c, min(c, x)),
/// instead of E Z^2. Clipped entries have all moments, so that limits for Gaussian entries hold. Without a limit it is
/// the one of .5, .71, 1 ... 8 for which this variance is least in the residual of a pilot for 2, and the note says it.
///
/// The pilot starts at zero and is eoptshrink:edgefit of the round before, until no entry moves by .3 deviations, in 30
/// rounds at most: first with limits that are wider in rows and columns whose median is larger, without which a strong
/// signal would grow by `limit` deviations in a round, then with one limit. The note says if the last did not settle.
///
/// Source: Huber 1964 for psi and the variance; Jaeckel 1971 for the least estimated variance; Perry, Wein, Bandeira
/// and Moitra 2018 for transforms of entries before PCA; the rounds are ours. Assumes noise that is symmetric, with
/// entries of one distribution: one scale for the whole block (whiten first where variances differ), and a signal
/// whose energy is not on a few entries, which are outliers. Independent of scale. A block without noise, or with more
/// than half of its residual zero, is left unchanged. Throws input_error for NaN and infinity. Cost: a decomposition a
/// round, 4 to 6 for signals of up to 10 detection thresholds.
[[nodiscard]] WhiteCoordinates clip_outliers(AnalysedBlock& block, std::optional<double> limit);

}  // namespace spiked::estimators
