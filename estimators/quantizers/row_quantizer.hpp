#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "estimators/rotations/row_rotation.hpp"

namespace spiked::estimators {

/// Bytes of a coded block and the purpose of each of their bits: ledger.total() == 8 * bytes.size().
struct Encoded {
    std::vector<std::uint8_t> bytes;
    Ledger ledger;

    /// Appends other coded data.
    Encoded& operator+=(const Encoded& next) {
        bytes.insert(bytes.end(), next.bytes.begin(), next.bytes.end());
        ledger += next.ledger;
        return *this;
    }
};

/// A row quantizer is two functions. Rows are rows of an m x d block; decode needs only their number. The float
/// functions do the same arithmetic in float: the format is the same, and indices differ only for values next to a
/// threshold. Rows with norms above 1e36 may overflow when they are decoded in float.
struct RowQuantizer {
    std::string name;  ///< as written
    std::function<Encoded(const arma::mat& rows)> encode;
    std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode;
    std::function<Encoded(const arma::fmat& rows)> encode_float;
    std::function<arma::fmat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode_float;
};

/// Throws precondition_error for rows of another length.
void require_length(std::size_t length, std::size_t dimension);

// Helpers for quantizers.

/// All written data, padded to whole bytes.
[[nodiscard]] Encoded finished(BitWriter& writer);
/// A quantizer without a float path of its own: floats are coded and decoded in double.
[[nodiscard]] RowQuantizer in_double(
    std::string name, std::function<Encoded(const arma::mat& rows)> encode,
    std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode);

}  // namespace spiked::estimators
