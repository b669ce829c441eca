#include "estimators/quantizers/row_quantizer.hpp"

#include <utility>

#include "core/runtime/error.hpp"

namespace spiked::estimators {

void require_length(std::size_t length, std::size_t dimension) {
    if (length != dimension)
        throw precondition_error("rows of length {} given to a quantizer for length {}", length, dimension);
}

Encoded finished(BitWriter& writer) {
    writer.align();
    const Ledger ledger = writer.ledger();
    return {writer.take_bytes(), ledger};
}

RowQuantizer in_double(std::string name, std::function<Encoded(const arma::mat& rows)> encode,
                       std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode) {
    auto encode_float = [encode](const arma::fmat& rows) { return encode(arma::conv_to<arma::mat>::from(rows)); };
    auto decode_float = [decode](std::span<const std::uint8_t> bytes, std::size_t rows) {
        return arma::conv_to<arma::fmat>::from(decode(bytes, rows));
    };
    return {std::move(name), std::move(encode), std::move(decode), std::move(encode_float), std::move(decode_float)};
}

}  // namespace spiked::estimators
