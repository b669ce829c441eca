#pragma once
#include <armadillo>
#include <cstddef>
#include <vector>

#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/decomposition.hpp"

namespace spiked::estimators {

/// A few of the largest singular values of a block with their vectors, and how far each can be from a singular value.
///
///     const LeadingPart part = leading_part(block, 8);
///     // part.values[0] +- part.bounds[0], part.vectors.left.col(0), ...
///
/// A bound is (|A v - s u|^2 + |A^T u - s v|^2)^(1/2) / 2^(1/2) for a value s with vectors u and v, computed from the
/// block itself, plus q e |A|_F for the rounding of this computation (q the long side, e the spacing of doubles at 1):
/// (u, v) / 2^(1/2) is a unit vector whose residual for the symmetric matrix [0 A; A^T 0] has that norm, and a
/// symmetric matrix has an eigenvalue so near; its eigenvalues are plus and minus the singular values, and 0.
///
/// This guarantees that some singular value lies within the bound of each value (for a value below its bound this says
/// only that it may be 0), but not that none was missed, in which case value i would belong to a later singular
/// value. Values of an iteration are those of the block on a subspace, so that none is larger than the singular value
/// of the same place but for rounding; they are smaller only where the random start of the iteration has nearly no part
/// along a vector. Values by decomposition miss none.
struct LeadingPart {
    std::vector<double> values;  ///< descending
    SingularVectors vectors;     ///< n x count and d x count, with left_i^T A right_i = value i
    std::vector<double> bounds;  ///< in units of the values
    std::size_t dimension = 0;   ///< of the Krylov space; 0: the whole block was decomposed
    bool converged = true;       ///< every bound is at most `leading_tolerance` of its value, or due to rounding
};

/// Residual at which the iteration stops, as a fraction of the value. Errors of the values are then of the order of its
/// square where they have no near neighbours, errors of vectors of its ratio to the distance of the neighbours.
inline constexpr double leading_tolerance = 1e-8;

/// The `count` largest singular values of a block of any scale, at most all of them: by block_krylov.hpp where that is
/// faster (leading_part_iterates) and is expected to converge before its dimension is a quarter of the short side
/// (convergence.hpp), and otherwise by BatchDecomposition. Throws input_error when the block holds NaN or infinity. The
/// same bits for any number of `threads` (0: one for each processor). Cost: bench/README.md; memory: block_krylov.hpp,
/// at most about twice the block beside it.
[[nodiscard]] LeadingPart leading_part(const arma::mat& block, std::size_t count, std::size_t threads = 1);
/// The same of what an analysed block keeps of its rows and columns, with vectors of the block's length.
[[nodiscard]] LeadingPart leading_part(const AnalysedBlock& block, std::size_t count, std::size_t threads = 1);
/// Whether leading_part begins with the iteration.
[[nodiscard]] bool leading_part_iterates(std::size_t short_side, std::size_t count);

/// The iteration alone, up to this dimension, for blocks whose short side is at least `count` and 8; what it has found
/// by then is returned with its bounds.
[[nodiscard]] LeadingPart iterated_part(const arma::mat& block, std::size_t count, std::size_t most_dimension,
                                        std::size_t threads = 1);

}  // namespace spiked::estimators
