#include "estimators/turboquant.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "estimators/byte_stream.hpp"
#include "estimators/scalar_quantizer.hpp"
#include "sim/stream/haar.hpp"
#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

/// What encoder and decoder share; made from the options alone, so nothing of it is stored.
struct Setup {
    std::size_t dimension;
    unsigned bits;
    NumberFormat norm;
    theory::Codebook codebook;
    arma::mat rotation;  // d x d orthogonal; empty for the identity
};

Encoded encode(const Setup& setup, const arma::mat& rows) {
    if (rows.n_cols != setup.dimension)
        throw bug("rows of length {} given to a quantizer for length {}", rows.n_cols, setup.dimension);
    if (!rows.is_finite()) throw input_error("a row holds NaN or infinity (it has no direction): clean the data first");
    const double unit = std::sqrt(static_cast<double>(setup.dimension));
    BitWriter writer;
    // Columns of `coordinates` are rows of the block, scaled to unit variance and rotated.
    arma::mat coordinates = rows.t();
    double largest = 0.0;
    for (arma::uword t = 0; t < rows.n_rows; ++t) {
        const double norm = arma::norm(coordinates.col(t));
        writer.write(Item::norms, encode_number(norm, setup.norm, "row norm"), bits_of(setup.norm));
        largest = std::max(largest, norm);
        if (norm > 0.0) coordinates.col(t) *= unit / norm;
    }
    // A small row beside larger ones may vanish; a whole block must not.
    refuse_underflow(largest, setup.norm, "largest row norm");
    if (!setup.rotation.is_empty()) coordinates = setup.rotation * coordinates;
    for (const double value : coordinates) writer.write(Item::indices, cell_of(value, setup.codebook), setup.bits);
    writer.align();
    const Ledger ledger = writer.ledger();
    return {writer.take_bytes(), ledger};
}

arma::mat decode(const Setup& setup, std::span<const std::uint8_t> bytes, std::size_t count) {
    BitReader reader(bytes);
    arma::rowvec norms(count);
    for (double& norm : norms) norm = decode_number(reader.read(bits_of(setup.norm)), setup.norm);
    arma::mat coordinates(setup.dimension, count);
    for (double& value : coordinates) value = setup.codebook.levels[reader.read(setup.bits)];
    if (!setup.rotation.is_empty()) coordinates = setup.rotation.t() * coordinates;
    coordinates.each_row() %= norms / std::sqrt(static_cast<double>(setup.dimension));
    return coordinates.t();
}

}  // namespace

RowQuantizer turboquant_mse(std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    auto setup = std::make_shared<Setup>();
    setup->dimension = dimension;
    setup->bits = bits;
    setup->norm = options.norm;
    const int index_bits = static_cast<int>(bits);
    setup->codebook = options.codebook == CodebookKind::sphere
                          ? theory::lloyd_max_sphere(static_cast<int>(dimension), index_bits)
                          : theory::lloyd_max_normal(index_bits);
    if (options.rotation == RotationKind::haar)
        setup->rotation = stream::haar_frame(
            stream::Stream(options.seed, "quantizer", stream::Role::rotation, options.rotation_index), dimension,
            dimension);
    return {"tq-mse", [setup](const arma::mat& rows) { return encode(*setup, rows); },
            [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); }};
}

}  // namespace spiked::estimators
