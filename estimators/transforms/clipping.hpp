#pragma once
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// The block with its outlying entries drawn in, for noise of heavy tails: the residual from a pilot estimate of the
/// signal is clipped at `limit` robust deviations (1.4826 times the median of its absolute values), divided by the
/// fraction of entries that are not clipped, and added to the pilot again. Four rounds, the first pilot is zero and the
/// next ones are eoptshrink:edgefit of the round before. To first order the signal is kept, and the noise is that of
/// Huber's location estimate: its variance is E psi(Z)^2 / P(|Z| < c)^2, psi(x) = max(-c, min(c, x)), instead of E Z^2.
/// Clipped entries have all moments, so that limits for Gaussian entries hold.
///
/// Source: Huber 1964 for psi and the variance; Perry, Wein, Bandeira and Moitra 2018 for transforms of entries before
/// PCA; the rounds are ours. Assumes noise that is symmetric, with entries of one distribution: one scale for the whole
/// block (whiten first where variances differ). Independent of scale. A block without noise, or with more than half of
/// its residual zero, is left unchanged. Throws input_error for NaN and infinity. Cost: four decompositions.
[[nodiscard]] WhiteCoordinates clip_outliers(AnalysedBlock& block, double limit);

}  // namespace spiked::estimators
