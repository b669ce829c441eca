#pragma once

namespace spiked::theory {

/// 1/(2^(2/3) - 1). Near a regular edge the j-th eigenvalue lies C (j/p)^(2/3) below the edge, so that two eigenvalues
/// determine the edge.
inline constexpr double edge_extrapolation = 1.7024143839193153;

}  // namespace spiked::theory
