#pragma once
#include <armadillo>

#include "sim/random/address.hpp"

namespace spiked::stream {

/// `columns` orthonormal vectors of length `dimension`, uniform over all such frames (QR of a Gaussian matrix with the
/// signs of R's diagonal made positive). Cost of one QR.
[[nodiscard]] arma::mat haar_frame(const Stream& stream, std::size_t dimension, std::size_t columns);

}  // namespace spiked::stream
