#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "estimators/shrinkage.hpp"
#include "theory/shrinkers.hpp"

namespace spiked::estimators {

/// How the top noise eigenvalues, hidden under the outliers, are filled in.
enum class Imputation { none, from_j, from_j_minus_1 };

struct EOptShrinkOptions {
    theory::Loss loss = theory::Loss::frobenius;
    bool pilot_from_columns = false;  ///< the paper's reading: k and margin from d instead of min(n, d)
    std::optional<double> margin;     ///< relative rank margin on eigenvalues; default p^{-1/3}
    Imputation imputation = Imputation::from_j_minus_1;
    std::optional<std::size_t> rank;  ///< oracle rank instead of the rank rule
};

/// eOptShrink: rank, bulk edge, strengths, overlaps and optimally shrunk values of a signal in noise of unknown
/// separable covariance, in the reference reading (eigenvalues are not squared again; see estimators/README.md).
///
/// Source: paper Algorithm 2; Su & Wu, "Data-driven optimal shrinkage of singular values under high-dimensional noise
/// with separable covariance structure".
/// Input: all min(n, d) singular values, descending. Returns rank 0 with a note when the block is too small, zero, or
/// the outliers leave no room for the imputation. An exactly low-rank block is kept unshrunk. Scale equivariant from
/// 1e-150 to 1e150. Cost O(p rank).
[[nodiscard]] Shrinkage eoptshrink(std::span<const double> singular_values, Shape shape, const EOptShrinkOptions& = {});

}  // namespace spiked::estimators
