#include "sim/random/haar.hpp"

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::stream {

arma::mat haar_frame(const Stream& stream, std::size_t dimension, std::size_t columns) {
    if (columns > dimension)
        throw precondition_error("{} orthonormal vectors of length {} do not exist", columns, dimension);
    arma::mat gaussian(dimension, columns);
    fill_normal(stream, {gaussian.memptr(), gaussian.n_elem});
    if (columns == 0) return gaussian;
    arma::mat frame;
    arma::mat triangle;
    if (!arma::qr_econ(frame, triangle, gaussian))
        throw postcondition_error("QR of a {} x {} Gaussian matrix failed", dimension, columns);
    for (arma::uword j = 0; j < columns; ++j)
        if (triangle(j, j) < 0.0) frame.col(j) *= -1.0;
    return frame;
}

}  // namespace spiked::stream
