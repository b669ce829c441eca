#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "estimators/ranks/rank_rule.hpp"
#include "estimators/spectral/eoptshrink_rule.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "theory/laws/shrinkers.hpp"

namespace spiked::estimators {

struct EOptShrinkOptions {
    theory::Loss loss = theory::Loss::frobenius;
    bool pilot_from_columns = false;   ///< k and margin from d instead of p = min(n, d)
    std::optional<std::size_t> pilot;  ///< k, where it is given
    EdgeRule edge = EdgeRule::two_points;
    double factor = 1.0;             ///< factor on the distance that two_points extrapolates
    int power = 1;                   ///< power of the eigenvalues in Steps 1 and 2; 2 squares them again
    std::optional<double> margin;    ///< relative rank margin, on the scale of `power`; default p^{-1/3}
    std::optional<std::size_t> cap;  ///< largest rank that `fit` searches; default 2k
    Imputation imputation = Imputation::from_j_minus_1;
    bool mass_of_rest = true;         ///< atoms have weight 1 over their number; if false, 1/p
    bool clip = true;                 ///< clips overlaps to [0, 1] and shrunk values to [0, observed]
    std::optional<std::size_t> rank;  ///< oracle rank instead of the rank rule
    BlockRankRule block_rank_rule =
        {};              ///< the same for a rule that needs the block; only `SpectralEstimator` applies it
    RankRule rank_rule;  ///< a rule instead of the bulk edge; its rank is lowered until the noise law has enough values

    [[nodiscard]] static EOptShrinkOptions paper();
    [[nodiscard]] static EOptShrinkOptions author();
    [[nodiscard]] static EOptShrinkOptions edge_fit();
};

/// eOptShrink: rank, bulk edge, strengths, overlaps and optimally shrunk values of a signal in noise of unknown
/// separable covariance, in the reference reading (eigenvalues are not squared again; see docs/METHODS.md) unless
/// the options say otherwise.
///
/// Source: paper Algorithm 2; Su & Wu, "Data-driven optimal shrinkage of singular values under high-dimensional noise
/// with separable covariance structure".
/// Input: all min(n, d) singular values, descending. Returns rank 0 with a note when the block is too small or zero, or
/// when the outliers leave too few noise eigenvalues for the imputation; also gives a note when more components stand
/// out than the rank rule can count. A block that is exactly of low rank is kept unshrunk. Scale equivariant from
/// 1e-150 to 1e150 and beyond; a bulk edge that overflows or underflows is left out. Cost O(p rank).
[[nodiscard]] Shrinkage eoptshrink(std::span<const double> singular_values, Shape shape, const EOptShrinkOptions& = {});

/// These options for all blocks of one shape, in the form that the arithmetic needs. `pilot` is 0 where the shape is
/// too small for an edge estimate. A rank by `rank_rule` depends on the block and is not included.
[[nodiscard]] EOptShrinkRule eoptshrink_rule(Shape shape, const EOptShrinkOptions& = {});

struct SpectralEstimator;

/// The options of an eOptShrink estimator, such as `eoptshrink:edgefit`; null for another estimator.
[[nodiscard]] const EOptShrinkOptions* eoptshrink_options(const SpectralEstimator& estimator);

}  // namespace spiked::estimators
