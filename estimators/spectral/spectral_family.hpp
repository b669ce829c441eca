#pragma once
#include "core/text/name_options.hpp"
#include "estimators/ranks/rank_rule.hpp"
#include "estimators/spectral/spectral_estimator.hpp"

namespace spiked::estimators {

/// An entry of the table of estimators: its description for users, and the function that makes an estimator from the
/// options in a name. Each method family defines its own.
struct SpectralFamily {
    EstimatorEntry entry;
    SpectralEstimator (*make)(const NameOptions& named, theory::Loss loss, const KnownLaw& known);
};

/// An estimator at a given rank: of the singular values, the shape and the rank.
using RankedEstimate = std::function<Shrinkage(std::span<const double>, Shape, std::size_t)>;
/// For a rank by a rule that needs the block: the function of a block that finds the rank and then estimates.
[[nodiscard]] std::function<Shrinkage(AnalysedBlock&)> ranked_by_block(BlockRankRule rule, RankedEstimate at_rank);

}  // namespace spiked::estimators
