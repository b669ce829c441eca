#pragma once
#include <armadillo>

#include "sim/random/address.hpp"

namespace spiked::stream {

/// A `dimension` x `columns` matrix with orthonormal columns, uniformly distributed over all such frames (QR of a
/// Gaussian matrix, with the signs chosen so that R has a positive diagonal). Costs one QR.
[[nodiscard]] arma::mat haar_frame(const Stream& stream, std::size_t dimension, std::size_t columns);

}  // namespace spiked::stream
